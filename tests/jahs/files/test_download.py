"""Downloads of large files from a real HTTP server here: resumed where they were cut, whole, or not there."""

import contextlib
import errno
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler

import pytest

from jahs.cli import main
from jahs.errors import CorruptFile, DownloadFailed, InvalidArgument, OutOfSpace, UnknownName, UnsafeFile
from jahs.files import download as module
from jahs.files import transport
from jahs.files.download import DownloadBar, fetch
from jahs.published.fetching import ARCHIVES, VERSIONS, download_archives
from tests.local_server import LocalServer, served
from tests.published_files import tar_bytes

CONTENT = random.Random(0).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(LocalServer):
    """Serves `content` at every address, and misbehaves as told.

    Attributes:
        content, etag: what is served, and its version (None: the server names none).
        cuts: after how many bytes each of the next answers breaks off; then answers are whole.
        ranges: whether ranges are known.
        status: what every answer says instead of 200.
        length: what Content-Length says instead of the truth ("": nothing).
        headers: what is sent besides.
        asked: (path, Range, If-Range) of every request.
    """

    def __init__(self):
        self.content, self.etag, self.cuts, self.ranges = CONTENT, '"1"', [], True
        self.status, self.length, self.headers, self.asked = None, None, {}, []
        self.contents = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.headers.get("Range")
                server.asked.append((self.path, asked, self.headers.get("If-Range")))
                if server.status is not None:
                    self.send_error(server.status)
                    return
                body = server.contents.get(self.path, server.content)
                n_all, start = len(body), 0
                if asked and server.ranges and self.headers.get("If-Range") in (None, server.etag):
                    start = int(asked.removeprefix("bytes=").removesuffix("-"))
                    if start >= n_all:
                        self.send_error(416)
                        return
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {start}-{n_all - 1}/{n_all}")
                else:
                    self.send_response(200)
                body = body[start:]
                if server.length != "":
                    self.send_header("Content-Length", server.length or str(len(body)))
                if server.etag is not None:
                    self.send_header("ETag", server.etag)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if server.cuts:
                    body = body[: server.cuts.pop(0)]
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, *_args):
                pass

        super().__init__(Handler)

    def ranges_asked(self):
        return [asked for _, asked, _ in self.asked]


@pytest.fixture
def server(monkeypatch):
    yield from served(Server(), monkeypatch)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "file.bin"


def get(server, path, **arguments):
    return fetch(f"{server.url}/file.bin", path, pause_s=0.0, **arguments)


@pytest.fixture
def begun(server, path):
    """A download that broke off after 100,000 bytes."""
    server.cuts = [100_000]
    with pytest.raises(DownloadFailed):
        get(server, path, n_attempts=1)


def in_a_process(server, path, what, before=""):
    lines = ["import os, pathlib, signal, sys", before, "from jahs.files.download import fetch"]
    lines += [f"url, path = {server.url + '/file.bin'!r}, pathlib.Path({str(path)!r})", what]
    return subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)


def left_over(path):
    return sorted(other.name for other in path.parent.iterdir()) if path.parent.exists() else []


WHOLE = ["file.bin", "file.bin.sha256"]
PART = [".file.bin.part", ".file.bin.part.json"]


def test_a_file_comes_whole_with_its_sha256_and_is_not_fetched_again(server, path):
    said = []
    fetched = get(server, path, report=lambda *numbers: said.append(numbers))
    assert (fetched.path, fetched.n_bytes, fetched.sha256, fetched.is_new) == (path, len(CONTENT), SHA256, True)
    assert path.read_bytes() == CONTENT
    said_beside = path.with_name("file.bin.sha256").read_text()
    assert said_beside == f"{SHA256}  file.bin\n# from {server.url}/file.bin\n"
    assert said[-1] == (len(CONTENT), len(CONTENT))
    assert left_over(path) == WHOLE
    assert get(server, path).is_new is False
    assert len(server.asked) == 1


def test_a_connection_that_breaks_is_made_again_and_goes_on(server, path):
    server.cuts = [100_000, 50_000, 0]
    assert get(server, path).sha256 == SHA256
    assert path.read_bytes() == CONTENT
    assert server.ranges_asked() == [None, "bytes=100000-", "bytes=150000-", "bytes=150000-"]
    assert {if_range for _, _, if_range in server.asked[1:]} == {'"1"'}
    assert left_over(path) == WHOLE


def test_a_download_that_failed_is_continued_by_the_next_one(server, path):
    server.cuts = [100_000]
    with pytest.raises(
        DownloadFailed,
        match=r"100000 bytes came, 300000 were announced; 100000 bytes are already here; the same command goes on",
    ):
        get(server, path, n_attempts=1)
    assert left_over(path) == PART
    assert get(server, path).sha256 == SHA256
    assert server.ranges_asked() == [None, "bytes=100000-"]
    assert left_over(path) == WHOLE


def test_a_server_without_ranges_sends_everything_again(server, path):
    server.cuts, server.ranges = [100_000], False
    assert get(server, path).sha256 == SHA256
    assert server.ranges_asked() == [None, "bytes=100000-"]


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(server, path, begun):
    server.content, server.etag = random.Random(1).randbytes(200_000), '"2"'
    get(server, path)
    assert path.read_bytes() == server.content


@pytest.mark.parametrize("etag", [None, 'W/"1"'], ids=["no version", "a weak version"])
def test_without_a_version_nothing_is_continued_nor_said_to_be(server, path, etag):
    server.cuts, server.etag = [100_000], etag
    with pytest.raises(DownloadFailed, match=r"100000 bytes came, 300000 were announced; try again, or name another"):
        get(server, path, n_attempts=1)
    server.cuts = [100_000]
    assert get(server, path).sha256 == SHA256
    assert server.ranges_asked() == [None, None, None]


def test_a_part_that_is_complete_is_checked_and_not_fetched_again(server, path):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(server, path, check=stop)
    assert path.with_name(PART[0]).stat().st_size == len(CONTENT)
    said, checked = [], []
    assert get(server, path, check=checked.append, report=lambda *numbers: said.append(numbers)).sha256 == SHA256
    assert server.ranges_asked() == [None, "bytes=300000-"]
    assert (len(checked), said) == (1, [(len(CONTENT), len(CONTENT))])
    assert left_over(path) == WHOLE


def test_a_file_from_another_address_is_not_taken_for_this_one(server, path):
    get(server, path)
    before = left_over(path), path.read_bytes()
    with pytest.raises(InvalidArgument, match=r"file\.bin is there, but from http.*/file\.bin; name .* --dir for http"):
        fetch(f"{server.url}/other.bin", path)
    assert (left_over(path), path.read_bytes()) == before
    assert fetch(f"{server.url}/other.bin", path, sha256=SHA256).is_new is False
    assert len(server.asked) == 1


def test_a_file_whose_address_was_not_recorded_is_there(server, path):
    get(server, path)
    for more in ("", f"{SHA256}  copy.bin\n"):
        path.with_name("file.bin.sha256").write_text(f"{SHA256}  file.bin\n{more}")
        assert get(server, path).is_new is False


def test_another_address_is_not_continued_with(server, path, begun):
    fetch(f"{server.url}/other.bin", path, pause_s=0.0)
    assert server.ranges_asked() == [None, None]


def test_a_part_that_is_too_long_is_thrown_away(server, path, begun):
    with path.with_name(PART[0]).open("ab") as file:
        file.write(bytes(300_000))
    assert get(server, path).sha256 == SHA256
    assert path.read_bytes() == CONTENT


def test_a_part_that_was_damaged_is_found_where_the_sha256_is_known(server, path, begun):
    path.with_name(PART[0]).write_bytes(bytes(100_000))
    with pytest.raises(DownloadFailed, match=f"sha256 is [0-9a-f]{{64}}, not {SHA256} as published"):
        get(server, path, sha256=SHA256)
    assert left_over(path) == []
    assert get(server, path, sha256=SHA256).sha256 == SHA256


def test_a_file_that_was_damaged_later_is_fetched_again(server, path):
    get(server, path)
    path.write_bytes(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    assert get(server, path).is_new is True
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_an_answer_that_is_an_error_is_said_at_once(server, path, status):
    server.status = status
    with pytest.raises(
        DownloadFailed, match=rf"^{re.escape(server.url)}/file\.bin: the server says {status} .*try again"
    ):
        get(server, path)
    assert len(server.asked) == 1
    assert left_over(path) == []


def test_an_error_in_the_middle_keeps_what_has_come(server, path, begun):
    server.status = 500
    with pytest.raises(
        DownloadFailed, match=r"says 500 .*; 100000 bytes are already here; the same command goes on from there"
    ):
        get(server, path)
    server.status = None
    assert get(server, path).sha256 == SHA256


@pytest.mark.parametrize(
    ("length", "fault"),
    [
        ("400000", "300000 bytes came, 400000 were announced"),
        ("", "does not say how long the file is"),
        ("-5", "does not say how long the file is"),
        ("many", "does not say how long the file is"),
        ("99999999999999999999", "does not say how long the file is"),
    ],
    ids=["too long", "none", "negative", "no number", "endless"],
)
def test_a_server_that_lies_about_the_length_is_found_out(server, path, length, fault):
    server.length, server.etag = length, None
    with pytest.raises(DownloadFailed, match=fault):
        get(server, path, n_attempts=2)
    assert not path.exists()


def test_a_length_that_is_too_short_is_found_by_what_the_file_should_be(server, path):
    server.length = "1000"
    with pytest.raises(DownloadFailed, match="sha256 is"):
        get(server, path, sha256=SHA256)
    assert left_over(path) == []


def test_a_range_that_was_not_asked_for_is_refused(server, path, begun):
    facts = path.with_name(PART[1])
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "n_bytes": 250_000}))
    with pytest.raises(
        DownloadFailed, match="asked for bytes 100000 to 250000, the server sends bytes 100000-299999/300000"
    ):
        get(server, path)
    assert not path.exists()


def test_an_encoded_answer_is_refused(server, path):
    server.headers = {"Content-Encoding": "gzip"}
    with pytest.raises(DownloadFailed, match="the server encodes the file, though asked not to"):
        get(server, path)


def test_too_little_disk_is_said_before_anything_comes(server, path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**6, 1, 250_000))
    with pytest.raises(OutOfSpace, match="has 250000 bytes free, 17077216 are needed; name another folder with --dir"):
        get(server, path)
    assert left_over(path) == []


def test_a_second_download_of_the_same_file_is_refused_and_the_first_one_comes_whole(server, path):
    refused = []

    def fetch_again(*_):
        with pytest.raises(DownloadFailed, match=r"file\.bin\.part: another process is downloading .*; wait .* --dir"):
            get(server, path)
        refused.append(left_over(path))

    assert get(server, path, report=fetch_again).sha256 == SHA256
    assert path.read_bytes() == CONTENT
    assert refused[0] == PART
    assert len(server.asked) == 1
    assert left_over(path) == WHOLE


def test_a_second_download_in_another_process_is_refused_in_one_line(server, path):
    said = []

    def fetch_again(*_):
        said.append(in_a_process(server, path, "fetch(url, path)").stderr.splitlines()[-1])

    server.cuts = [100_000]
    assert get(server, path, report=fetch_again).sha256 == SHA256
    assert len(said) >= 2
    assert all("DownloadFailed" in line and "another process is downloading" in line for line in said)
    assert server.ranges_asked() == [None, "bytes=100000-"]


def test_a_download_that_was_killed_does_not_keep_the_next_one_out(server, path):
    killed = in_a_process(server, path, "fetch(url, path, report=lambda *_: os.kill(os.getpid(), signal.SIGKILL))")
    assert killed.returncode == -signal.SIGKILL
    n_kept = path.with_name(PART[0]).stat().st_size
    assert 0 < n_kept < len(CONTENT)
    assert get(server, path).sha256 == SHA256
    assert server.ranges_asked() == [None, f"bytes={n_kept}-"]


def test_a_part_that_was_finished_just_before_it_was_locked_is_left_alone(server, path, monkeypatch):
    def finish_and_lock(file):
        path.with_name(PART[0]).replace(path)
        real(file)

    real = module.hold
    monkeypatch.setattr(module, "hold", finish_and_lock)
    with pytest.raises(DownloadFailed, match="another process is downloading"):
        get(server, path)
    assert left_over(path) == ["file.bin"]
    assert server.asked == []


def test_a_file_system_without_locks_is_said_and_used(server, path, monkeypatch, caplog):
    fcntl = pytest.importorskip("fcntl")

    def flock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    assert get(server, path).sha256 == SHA256
    assert "cannot be locked ([Errno" in caplog.text


def test_a_system_without_locks_downloads_too(server, path):
    done = in_a_process(server, path, "print(fetch(url, path).sha256)", before="sys.modules['fcntl'] = None")
    assert (done.stdout, done.stderr) == (f"{SHA256}\n", "")
    assert left_over(path) == WHOLE


@pytest.mark.parametrize("change", [b"x" * 10, None], ids=["longer", "shorter"])
def test_a_part_that_somebody_else_wrote_to_is_not_accepted(server, path, change):
    def write(n_bytes, n_all):
        part = path.with_name(PART[0])
        if n_bytes == n_all:
            part.write_bytes(part.read_bytes() + change if change else b"")

    with pytest.raises(DownloadFailed, match=r"file\.bin\.part has \d+ bytes, http.* has 300000; try again"):
        get(server, path, report=write)
    assert left_over(path) == []


@pytest.fixture
def no_wait(monkeypatch):
    def fail(_):
        raise AssertionError("it waited")

    monkeypatch.setattr(time, "sleep", fail)


@pytest.mark.parametrize(
    ("in_the_way", "name"),
    [("new", "new/file.bin"), ("new", "new/folder/file.bin"), ("new/file.bin/x", "new/file.bin")],
    ids=["the folder is a file", "its parent is a file", "the file is a folder"],
)
def test_a_place_that_cannot_be_used_is_said_before_anything_is_asked_for(server, tmp_path, no_wait, in_the_way, name):
    (tmp_path / in_the_way).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / in_the_way).write_text("in the way")
    with pytest.raises(DownloadFailed, match=r"the folder cannot be used: .*new.*; name another folder with --dir$"):
        get(server, tmp_path / name)
    assert server.asked == []


def test_a_part_that_is_a_folder_is_said_at_once(server, path, no_wait):
    path.with_name(PART[0]).mkdir(parents=True)
    with pytest.raises(DownloadFailed, match=r"the folder cannot be used: .*\.part'; name another folder with --dir$"):
        get(server, path)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS], ids=["access", "permission", "read-only"])
def test_a_disk_that_refuses_is_not_asked_again(server, path, no_wait, monkeypatch, number):
    def begin(part, facts):
        raise OSError(number, os.strerror(number), str(part.path))

    monkeypatch.setattr(module._Part, "begin", begin)
    with pytest.raises(DownloadFailed, match=rf"the folder cannot be used: .*{os.strerror(number)}.* with --dir$"):
        get(server, path)
    assert len(server.asked) == 1
    assert left_over(path) == []


def test_a_file_that_may_not_be_read_is_no_fault_of_the_server(server, path, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    get(server, path)
    monkeypatch.setattr(module, "sha256_file", refuse)
    with pytest.raises(DownloadFailed, match=r"the folder cannot be used: .*Permission denied.* with --dir$"):
        get(server, path)


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, OutOfSpace), (errno.EDQUOT, DownloadFailed)])
def test_a_disk_that_is_full_is_not_asked_again(server, path, no_wait, number, error):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    with pytest.raises(error, match="name another folder with --dir"):
        get(server, path, report=fail)
    assert len(server.asked) == 1


def test_nobody_listening_is_tried_again_and_then_said_in_one_line(path):
    with pytest.raises(DownloadFailed, match=r"^http://127\.0\.0\.1:1/x: .*refused.*try again") as raised:
        fetch("http://127.0.0.1:1/x", path, pause_s=0.0)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("stalled", [False, True])
def test_silence_ends_the_wait(path, monkeypatch, stalled):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(transport, "PATIENCE_S", 0.05)
    if stalled:  # a busy machine may run the timer before it notices the socket's timeout
        timer = threading.Timer
        monkeypatch.setattr(threading, "Timer", lambda _, function: timer(0.0, function))
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(DownloadFailed, match="timed out"):
        fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/x", path, n_attempts=2, pause_s=0.0)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/y", "example.org", ""])
def test_other_kinds_of_address_are_refused(path, address):
    with pytest.raises(InvalidArgument, match="does not begin with http:// or https://"):
        fetch(address, path)


def test_what_a_check_refuses_gets_no_name(server, path):
    def check(file):
        assert file.read_bytes() == CONTENT
        raise UnsafeFile("no")

    with pytest.raises(UnsafeFile, match="no"):
        get(server, path, check=check)
    assert left_over(path) == []


def test_the_bar_draws_on_a_terminal_and_says_a_line_elsewhere(monkeypatch):
    quiet = io.StringIO()
    bar = DownloadBar(quiet)
    bar("a.tar", 5, 10)
    bar("a.tar", 10, 10)
    assert quiet.getvalue() == "a.tar: 10 bytes in 0 s\n"
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    bar = DownloadBar(terminal)
    bar("a.tar", 0, 10)
    bar("a.tar", 10, 10)
    assert terminal.getvalue() == "\r\033[Ka.tar   0%, 0 s left\r\033[Ka.tar 100%, 0 s left\n"


def endless():
    """An archive whose one member claims more bytes than there are."""
    member = tarfile.TarInfo("a")
    member.size = 1 << 70
    return member.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


@pytest.fixture
def archives(server):
    server.content = tar_bytes({"a/b.pkl.gz": b"data"})
    return server


def test_both_archives_are_fetched_from_the_folder_of_a_server(archives, tmp_path):
    fetched = download_archives(tmp_path, url=f"{archives.url}/v1/")
    assert [one.path for one in fetched] == [tmp_path / name for name in ARCHIVES.values()]
    assert [asked for asked, *_ in archives.asked] == [f"/v1/{name}" for name in ARCHIVES.values()]


@pytest.mark.parametrize(
    ("content", "error", "fault"),
    [
        (b"", CorruptFile, "is cut off|is not a readable archive"),
        (b"<html>sign in</html>", CorruptFile, "is not a readable archive"),
        (tar_bytes({"a": b"data"})[:514], CorruptFile, "is cut off|is not a readable archive"),
        (tar_bytes({"../evil": b""}), UnsafeFile, r"member '\.\./evil' would land outside"),
        (endless(), UnsafeFile, "claims"),
    ],
    ids=["nothing", "a page", "cut off", "hostile", "endless"],
)
def test_what_is_no_archive_gets_no_name(archives, tmp_path, content, error, fault):
    archives.content = content
    with pytest.raises(error, match=fault):
        download_archives(tmp_path, what=["table"], url=archives.url)
    assert list(tmp_path.iterdir()) == []


def test_a_version_does_not_pass_for_another(archives, tmp_path, monkeypatch):
    monkeypatch.setattr("jahs.published.fetching._ADDRESS", archives.url + "/v{version}")
    assert download_archives(tmp_path, what=["table"], version="1.0.0")[0].is_new
    with pytest.raises(InvalidArgument, match=r"is there, but from .*/v1\.0\.0/.*; name another .* /?.*v1\.1\.0/"):
        download_archives(tmp_path, what=["table"])
    assert download_archives(tmp_path, what=["table"], version="1.0.0")[0].is_new is False


def test_the_command_says_what_it_did_and_what_comes_next(archives, tmp_path, capsys):
    words = ["download", "jahs-bench-201", "--what", "surrogates", "--dir", str(tmp_path), "--url", archives.url]
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()
    path = tmp_path / "assembled_surrogates.tar"
    sha256 = hashlib.sha256(archives.content).hexdigest()
    assert said == [f"{path}: {len(archives.content)} bytes, sha256 {sha256}", f"Next: jahs import {path} --out DIR"]
    assert main([*words, "--json"]) == 0
    (fact,) = json.loads(capsys.readouterr().out)
    assert fact == {"is_new": False, "n_bytes": len(archives.content), "path": str(path), "sha256": sha256}


def test_a_download_goes_through_where_stderr_is_closed(archives, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    words = ["--what", "surrogates", "--dir", str(tmp_path), "--url", archives.url]
    assert main(["download", "jahs-bench-201", *words]) == 0
    assert (tmp_path / ARCHIVES["surrogates"]).is_file()


def test_what_does_not_exist_is_named(tmp_path):
    with pytest.raises(UnknownName, match="what='datasets' does not exist"):
        download_archives(tmp_path, what=["datasets"])
    with pytest.raises(UnknownName, match="version='2' does not exist"):
        download_archives(tmp_path, version="2")
    assert VERSIONS[0] == "1.1.0"


def test_a_rest_of_another_version_is_not_put_behind_what_is_kept(server, path):
    server.cuts = [100_000]
    with pytest.raises(DownloadFailed):
        fetch(server.url, path, n_attempts=1)
    server.content = random.Random(1).randbytes(300_000)
    server.headers = {"ETag": '"2"'}  # which the answer has in the place of what was asked for
    server.etag, kept = None, server.etag
    assert kept == '"1"'
    open_address, asked = module.open_address, []

    def forget_if_range(address, headers):
        asked.append("Range" in headers)
        return open_address(address, {key: value for key, value in headers.items() if key != "If-Range"})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "open_address", forget_if_range)
        fetch(server.url, path, n_attempts=1)
    assert asked == [True, False]
    assert path.read_bytes() == server.content


def test_two_lengths_are_refused(server, path):
    server.headers = {"Content-Length": "7"}
    with pytest.raises(DownloadFailed, match="the server announces several lengths"):
        fetch(server.url, path, n_attempts=1)


def test_a_length_that_is_not_that_of_the_published_file_is_refused_before_it_comes(server, path):
    with pytest.raises(DownloadFailed, match="the server announces 300000 bytes, 7 were published"):
        fetch(server.url, path, n_bytes=7)


def test_a_server_that_sends_from_https_to_http_is_not_followed():
    asked = urllib.request.Request("https://a.example/x")
    follow = transport._SafeRedirects().redirect_request
    with pytest.raises(DownloadFailed, match=r"sends on to 'http://b\.example/x'"):
        follow(asked, None, 302, "Found", {}, "http://b.example/x")
    assert follow(asked, None, 302, "Found", {}, "https://b.example/x").full_url == "https://b.example/x"


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\n", "that is too slow"),
        (b"HTTP/1.0 200 OK\r\nX: ", "timed out"),
    ],
    ids=["body", "headers"],
)
def test_a_server_whose_bytes_drip_is_given_up_on(path, monkeypatch, first, message):
    class Dripping(BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(ConnectionError):
                self.wfile.write(first)
                for _ in range(1000):
                    self.wfile.write(b"x")
                    time.sleep(0.02)

        def log_message(self, *_):
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(transport, "PATIENCE_S", 0.2)
    server = LocalServer(Dripping)
    try:
        start = time.monotonic()
        with pytest.raises(DownloadFailed, match=message):
            fetch(server.url, path, n_attempts=1)
        assert time.monotonic() - start < 10
    finally:
        server.close()


def test_what_a_server_says_cannot_move_the_cursor(path):
    said = module.explained(OSError("\x1b[2Jgone\n"), "http://x")
    assert "\\x1b[2Jgone\\n" in str(said)
    assert str(said).isprintable()
