"""Answers over http and https: only safe redirects are followed, and waiting has a limit."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from jahs.errors import DownloadFailed

ELSEWHERE: Final = "try again, or name another server with --url"
PATIENCE_S = 60.0
"""Seconds to wait for a byte, and between two checks of the rate; the headers of an answer may take twice as long."""


def open_address(address: str, headers: Mapping[str, str]) -> Any:  # Any: urllib's response, of a class per scheme
    """Return a server's answer; redirects are followed where they are safe."""
    request = urllib.request.Request(address, headers=dict(headers))  # noqa: S310  # the scheme was checked
    return urllib.request.build_opener(_SafeRedirects, _Http, _Https).open(request, timeout=PATIENCE_S)


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but only to http and https, and from https only to https."""

    def redirect_request(
        self, req: urllib.request.Request, *args: Any
    ) -> urllib.request.Request | None:  # Any: urllib's
        redirect = super().redirect_request(req, *args)
        allowed = ("https://",) if req.full_url.startswith("https://") else ("http://", "https://")
        if redirect is not None and not redirect.full_url.startswith(allowed):
            raise DownloadFailed(f"{req.full_url}: the server sends on to {redirect.full_url[:200]!r}; {ELSEWHERE}")
        return redirect


class _Patient(http.client.HTTPConnection):
    """Gives up on an answer whose headers do not arrive."""

    def getresponse(self) -> http.client.HTTPResponse:
        given_up = threading.Event()

        def give_up() -> None:
            given_up.set()
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(2 * PATIENCE_S, give_up)
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()
        except (OSError, http.client.HTTPException):
            if given_up.is_set():  # the connection was closed here, not by the server
                raise TimeoutError("timed out") from None
            raise
        finally:
            timer.cancel()
        if given_up.is_set():  # http.client takes headers that end early for all of them
            response.close()
            raise TimeoutError("timed out")
        return response


class _PatientSecurely(_Patient, http.client.HTTPSConnection):
    """`_Patient` over TLS."""


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Patient, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_PatientSecurely, req)
