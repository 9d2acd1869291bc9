"""One self-contained page for a release: its models, evaluated in the browser, and everything that was recorded."""

from jahs.explorer.page import MOST_BYTES, write_page
from jahs.explorer.subject import Subject, read_subject

__all__ = ["MOST_BYTES", "Subject", "read_subject", "write_page"]
