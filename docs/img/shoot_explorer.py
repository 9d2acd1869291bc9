"""Take docs/img/explorer.png, the first screen of the explorer, with Chromium: `python docs/img/shoot_explorer.py`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from jahs.explorer import read_subject, write_page

SIZE = (1400, 1214)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000")

if __name__ == "__main__":
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program is not None, "Chromium is not installed"
    picture = Path(__file__).resolve().with_name("explorer.png")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "explorer.html"
        write_page(read_subject("fashion_mnist_mini"), page)
        size = f"--window-size={SIZE[0]},{SIZE[1]}"
        command = [program, *FLAGS, f"--user-data-dir={folder}/profile", size, f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)  # noqa: S603  # our own command
