"""A real HTTP server on this machine, for tests of downloads."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

import pytest

Server = TypeVar("Server", bound="LocalServer")


class LocalServer:
    """Serves `handler` from its own thread.

    Attributes:
        url: address of the server, without a slash at the end.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def served(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Yield a server that is reached without a proxy, and close it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.close()
