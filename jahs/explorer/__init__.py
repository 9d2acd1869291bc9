"""One self-contained page for a release: its models, evaluated in the browser, and its recorded runs."""

from jahs.explorer.page import MOST_BYTES, Subject, read_subject, write_page

__all__ = ["MOST_BYTES", "Subject", "read_subject", "write_page"]
