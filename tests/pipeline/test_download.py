"""Several files from a real HTTP server on this machine: each is right or absent, and every fault is one clear line.

How one file is fetched is tested in `tests/jahs/files/test_download.py`.
"""

import contextlib
import hashlib
import os
import re
import shutil
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from jahs.errors import DownloadFailed, OutOfSpace
from jahs.files import download as fetching
from pipeline import download as module
from pipeline.download import PUBLISHED, DataFile, download, main
from pipeline.sources import FASHION_FILES
from tests.local_server import LocalServer, served

_CONTENTS = {name: os.urandom(1000 * (position + 1)) for position, name in enumerate(FASHION_FILES)}
_FILES = {name: DataFile(len(data), hashlib.sha256(data).hexdigest()) for name, data in _CONTENTS.items()}
_LAST = FASHION_FILES[3]


class _Server(LocalServer):
    """Serves `contents`; a path that is not there is a 404."""

    def __init__(self):
        self.contents = {f"/{name}": data for name, data in _CONTENTS.items()}
        self.requested = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requested.append(self.path.lstrip("/"))
                body = server.contents.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # who asks may have seen enough
                    self.wfile.write(body)

            def log_message(self, *_args):
                pass

        super().__init__(Handler)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(fetching.time, "sleep", lambda _: None)


@pytest.fixture
def server(monkeypatch):
    yield from served(_Server(), monkeypatch)


def _names(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".sha256" and not path.name.startswith("."))


def test_every_file_comes_whole_and_the_next_call_fetches_nothing(server, tmp_path):
    folder = tmp_path / "new" / "folder"
    assert download(folder, url=server.url + "/", files=_FILES) == list(FASHION_FILES)
    assert {name: (folder / name).read_bytes() for name in _names(folder)} == _CONTENTS
    server.requested.clear()
    assert download(folder, url=server.url, files=_FILES) == []
    assert server.requested == []


def test_only_what_is_absent_or_wrong_is_fetched(server, tmp_path):
    download(tmp_path, url=server.url, files=_FILES)
    (tmp_path / FASHION_FILES[0]).unlink()
    (tmp_path / FASHION_FILES[2]).write_bytes(bytes(len(_CONTENTS[FASHION_FILES[2]])))
    assert download(tmp_path, url=server.url, files=_FILES) == [FASHION_FILES[0], FASHION_FILES[2]]
    assert {name: (tmp_path / name).read_bytes() for name in _names(tmp_path)} == _CONTENTS


def test_a_file_that_is_not_there_keeps_those_that_came_before(server, tmp_path):
    del server.contents[f"/{_LAST}"]
    with pytest.raises(DownloadFailed, match=re.escape(f"{server.url}/{_LAST}: the server says 404 Not Found; try")):
        download(tmp_path, url=server.url, files=_FILES)
    assert _names(tmp_path) == sorted(FASHION_FILES[:3])


def test_too_little_disk_is_said_before_anything_is_fetched(server, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10_000, 1, 9_999))
    with pytest.raises(OutOfSpace, match="has 9999 bytes free, 10000 are needed; name another folder with --dir"):
        download(tmp_path, url=server.url, files=_FILES)
    assert server.requested == []


def test_a_folder_that_cannot_be_made_is_named(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadFailed, match=f"^{re.escape(str(tmp_path / 'file'))}.* cannot be used"):
        download(tmp_path / "file" / "folder", url=server.url, files=_FILES)


def test_the_command_says_what_it_did(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "PUBLISHED", {"fashion_mnist": _FILES})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "jahs" / "fashion_mnist"
    assert main(["fashion_mnist", "--url", server.url]) == 0
    output = capsys.readouterr()
    assert output.out == f"{folder}: 4 files fetched, 0 already present\n"
    assert [line.split(":")[0] for line in output.err.splitlines()] == list(FASHION_FILES)
    assert main(["fashion_mnist", "--url", server.url]) == 0
    assert capsys.readouterr().out == f"{folder}: 0 files fetched, 4 already present\n"


@pytest.mark.parametrize(
    ("arguments", "status", "fault"),
    [
        (["--url", "file:///etc"], 2, "url='file:///etc' does not begin with http:// or https://"),
        (["--url", "http://127.0.0.1:1"], 2, "refused"),
    ],
)
def test_the_command_fails_with_one_line(tmp_path, monkeypatch, capsys, arguments, status, fault):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert main(["fashion_mnist", "--dir", str(tmp_path / "new"), *arguments]) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert fault in output.err
    assert not list(tmp_path.rglob("*.gz"))


def test_an_unknown_data_set_lists_those_that_exist(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["digits"])
    assert raised.value.code == 2
    assert "choose from" in capsys.readouterr().err


def test_the_system_files_are_the_published_ones_but_for_the_name_in_their_header():
    # Debian's package compresses without the file's name. With the name and the time of 2017 in the header, its files
    # are byte for byte those whose sha256 is checked above; they also have the MD5 that the authors state.
    folder = Path("/usr/share/datasets/fashion-mnist")
    if not folder.is_dir():
        pytest.skip("the Debian package dataset-fashion-mnist is not installed")
    times = (1504176606, 1504176606, 1504176627, 1504176627)
    md5 = (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    )
    for name, time, digest in zip(FASHION_FILES, times, md5, strict=True):
        ours = (folder / name).read_bytes()
        header = (
            ours[:3] + b"\x08" + time.to_bytes(4, "little") + ours[8:10] + name.removesuffix(".gz").encode() + b"\x00"
        )
        theirs = header + ours[10:]
        assert len(theirs) == PUBLISHED["fashion_mnist"][name].n_bytes
        assert hashlib.sha256(theirs).hexdigest() == PUBLISHED["fashion_mnist"][name].digest
        assert hashlib.md5(theirs).hexdigest() == digest


def test_cifar10_comes_whole_and_is_checked_against_its_md5(server, tmp_path, monkeypatch, capsys):
    name, content = "cifar-10-binary.tar.gz", os.urandom(5000)
    assert dict(PUBLISHED["cifar10"]) == {name: DataFile(170052171, "c32a1d4ab5d03f1284b67883e8d87530", "md5")}
    published = {"cifar10": {name: DataFile(5000, hashlib.md5(content).hexdigest(), "md5")}}
    monkeypatch.setattr(module, "PUBLISHED", published)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "jahs" / "cifar10"
    server.contents[f"/{name}"] = bytes(5000)
    assert main(["cifar10", "--url", server.url]) == 2
    assert f"{name}: md5 is " in capsys.readouterr().err
    assert _names(folder) == []
    server.contents[f"/{name}"] = content
    assert main(["cifar10", "--url", server.url]) == 0
    assert (folder / name).read_bytes() == content
    server.requested.clear()
    assert main(["cifar10", "--url", server.url]) == 0
    assert server.requested == []


@pytest.mark.usefixtures("no_home")
def test_a_user_without_a_home_names_a_folder(capsys):
    assert main(["cifar10"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "this user has no home" in line
    assert "--dir" in line
