"""A headless Chromium that tests drive through its own protocol, over a pair of pipes: no driver, no network."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
# The browser reads file 3 and writes file 4. Both are moved first, in case they are 3 or 4.
_START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._buffer = to, back, b""
        self._n_sent, self._session = 0, None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> Any:
        """Return the result of a command."""
        self._n_sent += 1
        message = {"id": self._n_sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._n_sent:
                assert "error" not in found, found
                return found["result"]
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._back, 2**20)
            assert data, "the browser has gone"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(
        self,
        page: Path,
        *,
        width: int = 1280,
        height: int = 900,
        phone: bool = False,
        dark: bool = False,
        before: str = "",
    ) -> None:
        """Load a file and wait until it has settled; `before` is a script to run first; a phone has a touch screen."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.send("Emulation.setTouchEmulationEnabled", enabled=phone, **({"maxTouchPoints": 5} if phone else {}))
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        if before:
            self.send("Page.addScriptToEvaluateOnNewDocument", source=before)
        self.send("Page.navigate", url=page.resolve().as_uri())
        deadline = time.monotonic() + 60
        while not self.ask("document.body?.dataset.ready || document.body?.matches('.without-models')"):
            assert not self.faults()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def faults(self) -> list[Any]:
        """Return what the page logged or threw."""
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown")
        return [event["params"] for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        sent = (event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [params["request"]["url"] for params in sent]

    def ask(self, expression: str) -> Any:
        """Return the value of an expression, awaited."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str, *, seconds: float = 20) -> None:
        """Wait until a condition holds: a page draws a moment after it has settled, on a busy machine a longer one."""
        deadline = time.monotonic() + seconds
        while not self.ask(condition):
            assert time.monotonic() < deadline, f"{condition} never held"
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def drag(self, element: str, *places: tuple[float, float], pointer: str = "mouse") -> None:
        """Drag a mouse, a pen or a finger along places in an element; one place is a click or a tap."""
        corner = f"""(() => {{
          const element = document.getElementById('{element}');
          element.scrollIntoView({{ block: 'center', behavior: 'instant' }});
          const {{ x, y }} = element.getBoundingClientRect();
          return [x, y];
        }})()"""
        left, top = self.ask(corner)
        points = [{"x": left + x, "y": top + y} for x, y in places]
        if pointer == "touch":
            for i, point in enumerate(points):
                self.send("Input.dispatchTouchEvent", type="touchMove" if i else "touchStart", touchPoints=[point])
            self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            return
        held = {"button": "left", "clickCount": 1, "pointerType": pointer}
        self.send("Input.dispatchMouseEvent", type="mousePressed", buttons=1, **points[0], **held)
        for point in points[1:]:
            self.send("Input.dispatchMouseEvent", type="mouseMoved", buttons=1, **point, **held)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", **points[-1], **held)

    def picture(self, path: Path) -> None:
        """Write the whole page as a PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser whose profile is in a folder."""
    assert PROGRAM is not None
    (read, to), (back, write) = os.pipe(), os.pipe()
    command = [sys.executable, "-c", _START, str(read), str(write), PROGRAM, *_FLAGS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(command, pass_fds=(read, write), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    os.close(read)
    os.close(write)
    try:
        one = Browser(to, back)
        yield one
        one._session = None
        one.send("Browser.close")
    finally:
        os.close(to)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(back)
