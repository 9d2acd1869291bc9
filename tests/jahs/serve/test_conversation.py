"""The contract of `jahs serve`: a reply to every line, the rules and the log of a simulation, and nothing lost."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import CorruptFile, InvalidArgument, OutOfSpace, ProtocolMismatch
from jahs.serve.conversation import Conversation
from jahs.serve.transport import serve_lines
from jahs.simulate import Proposal, read_log
from tests.jahs.serve.conftest import make_terms, told
from tests.jahs.simulate.full_disk import full_disk

HERE = Path(__file__).parent
STATE = {"clock", "budget", "free", "running", "over"}
CONFIGS = make_terms().view.sample(20, seed=0)
SUBMIT = {"do": "submit", "config": CONFIGS[0]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
VERBS = st.sampled_from(["space", "submit", "wait", "stop", "trials", "status", "end"])


def written(log: Path) -> tuple[dict, list[dict]]:
    """The log's header without what names the client, and its other lines."""
    header, *lines = map(json.loads, log.read_text().splitlines())
    names = {"study", "arm", "optimizer", "optimizer_settings", "blind"}
    return {key: value for key, value in header.items() if key not in names}, lines


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return list(map(rounded, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("blind", [None, 1], ids=["plain", "blind"])
def test_a_conversation_is_the_golden_one(blind: int | None) -> None:
    """Lines of the file begin with > for what the client writes and < for what it reads."""
    golden = (HERE / ("blind.txt" if blind else "plain.txt")).read_text(encoding="utf-8").splitlines()
    with Conversation(make_terms(workers=2), blind=blind) as conversation:
        replies = told(conversation, *(line[2:].encode() for line in golden if line.startswith("> ")))
    expected = [json.loads(line[2:]) for line in golden if line.startswith("< ")]
    assert rounded(replies) == expected


def test_the_log_is_the_one_of_the_same_optimiser_in_python(tmp_path: Path) -> None:
    proposals = [Proposal(config=config, at=at) for config, at in zip(CONFIGS, [1, 4, 12, 3, 12] * 4, strict=True)]
    ahead = iter(proposals)
    terms = make_terms(workers=3)
    terms.simulation(seed=5, log=tmp_path / "python.jsonl").run(lambda trials: next(ahead, None))
    ahead = iter(proposals)
    with Conversation(terms, seed=5, log=tmp_path / "served.jsonl") as conversation:
        state = conversation.answer({"do": "status"})
        while not state["over"]:
            while state["free"] and (proposal := next(ahead, None)):
                state = conversation.answer({"do": "submit", "config": proposal.config, "at": proposal.at})
            state = conversation.answer({"do": "wait" if state["running"] else "end"})
    assert written(tmp_path / "served.jsonl") == written(tmp_path / "python.jsonl")


def test_a_budget_that_is_spent_ends_the_log_and_refuses_what_comes_after(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with Conversation(make_terms(budget_s=1.0, workers=2), log=log) as conversation:
        replies = [conversation.answer({"do": "status"})]
        configs = iter(CONFIGS)
        while not replies[-1]["over"]:
            more = {"do": "submit", "config": next(configs)} if replies[-1]["free"] else {"do": "wait"}
            replies.append(conversation.answer(more))
        refused = conversation.answer({"do": "submit", "config": CONFIGS[0]})
        listed = conversation.answer({"do": "trials"})["trials"]
    assert refused["error"].startswith("the run is over (budget)")
    assert listed == [trial for reply in replies for trial in reply.get("trials", [])]
    assert [trial["trial"] for trial in listed] == [trial.trial for trial in read_log(log).trials]
    assert listed[-1]["status"] == "unfinished"
    assert read_log(log).ending["ended"] == "budget"


def test_a_trial_is_stopped_at_its_report() -> None:
    with Conversation(make_terms()) as conversation:
        requests = [{**SUBMIT, "reports": [2, 5]}, {"do": "wait"}, {"do": "stop", "trial": 0}, {"do": "wait"}]
        _, report, _, stopped, state = told(conversation, *requests, {"do": "status"})
    assert report["trials"][0] | {"status": "stopped"} == stopped["trials"][0]
    assert stopped["trials"][0]["at"] == {"epoch": 2}
    assert state["running"] == []


def test_what_is_measured_on_the_test_images_is_never_told(conversation: Conversation) -> None:
    replies = told(conversation, {"do": "space"}, SUBMIT, {"do": "wait"}, {"do": "trials"}, {"do": "end"})
    assert "test_" not in json.dumps(replies)


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        (b"oops", "not JSON: Expecting value at column 1"),
        (b'{"do": "wait"', "not JSON: Expecting ',' delimiter at column 14"),
        (b'{"do": "wait", "do": "end"}', "twice"),
        (b'{"do": "stop", "trial": NaN}', "not a finite number"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nests too deep"),
        (b'"' + b"x" * 2_000_000 + b'"', "too long"),
        ([], r'write {"do": VERB}'),
        ({"do": ["wait"]}, "VERB is one of space, submit, wait"),
        ({"do": "dance"}, "VERB is one of space, submit, wait"),
        ({"do": "wait", "for": 3}, "wait takes no arguments, not for"),
        ({"do": "submit", "confg": {}}, "submit takes config, at, reports, not confg"),
        ({"do": "submit"}, "config=None is not an object"),
        ({"do": "submit", "config": {"N": 5}}, "LearningRate is missing"),
        ({**SUBMIT, "config": {**CONFIGS[0], "LearningRate": 3}}, "LearningRate=3.0 is outside"),
        ({**SUBMIT, "at": 13}, "13"),
        ({**SUBMIT, "at": 9.4}, "epoch=9.4 is not a whole number"),
        ({**SUBMIT, "at": {"epoch": 9.4}}, "epoch=9.4 is not a whole number"),
        ({**SUBMIT, "at": {"N": 1}}, "N"),
        ({**SUBMIT, "reports": [12]}, "not increasing epochs"),
        ({**SUBMIT, "reports": 3}, "not a sequence of epochs"),
        ({"do": "wait"}, "no trial runs"),
        ({"do": "stop", "trial": 0}, "trial=0 does not run"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_fault_is_named_and_the_run_goes_on(conversation: Conversation, request_: object, fault: str) -> None:
    refused, started, ended = told(conversation, request_, SUBMIT, {"do": "wait"})
    assert fault in refused["error"]
    assert started["trial"] == 0
    assert ended["trials"][0]["status"] == "finished"


@pytest.mark.parametrize("blind", [None, 1], ids=["plain", "blind"])
def test_of_thousands_of_faults_the_first_are_named_and_the_others_counted(blind: int | None) -> None:
    many = {f"key{i}": i for i in range(5000)}
    with Conversation(make_terms(), blind=blind) as conversation:
        parameters = told(conversation, {"do": "space"})[0]["parameters"]
        config = {name: each.get("choices", [each.get("upper")])[0] for name, each in parameters.items()}
        submit = {"do": "submit", "config": config}
        replies = told(conversation, {**submit, **many}, {**submit, "config": many}, {**submit, "at": many})
    for reply in replies:
        assert "key19" in reply["error"]
        assert "key20" not in reply["error"]
        assert "... and 4980 more" in reply["error"]
        assert len(reply["error"]) < 4000


def test_a_second_config_waits_for_a_free_worker(conversation: Conversation) -> None:
    assert told(conversation, SUBMIT, SUBMIT)[1]["error"] == "no worker is free; wait"


@given(
    st.lists(
        st.binary(max_size=40).filter(lambda line: b"\n" not in line)
        | JSON.map(lambda value: json.dumps(value).encode())
        | st.dictionaries(st.sampled_from(["config", "at", "reports", "trial", "id"]), JSON, max_size=3).flatmap(
            lambda found: VERBS.map(lambda verb: json.dumps({**found, "do": verb}).encode())
        )
        | st.builds(lambda at, reports: json.dumps({**SUBMIT, "at": at, "reports": reports}).encode(), JSON, JSON),
        max_size=12,
    ),
    st.sampled_from([None, 3]),
)
def test_every_line_is_answered_with_one_object(lines: list[bytes], blind: int | None) -> None:
    with Conversation(make_terms(), blind=blind) as conversation:
        replies = told(conversation, *lines)
    assert len(replies) == sum(bool(line.strip()) for line in lines)
    assert all(reply.keys() >= STATE for reply in replies)
    assert sum("trial" in reply for reply in replies) <= sum(b"submit" in line for line in lines)


def test_an_id_comes_back_with_its_reply_or_its_fault(conversation: Conversation) -> None:
    replies = told(conversation, {"do": "status", "id": "a"}, {"do": "dance", "id": [1]})
    assert [reply["id"] for reply in replies] == ["a", [1]]


REQUESTS = [
    {**SUBMIT, "reports": [1, 4]},
    {"do": "submit", "config": CONFIGS[1], "at": 3},
    {"do": "wait"},
    {"do": "submit", "config": {}},
    {"do": "wait"},
    {"do": "stop", "trial": 0},
    {"do": "wait"},
    {"do": "submit", "config": CONFIGS[1]},
    {"do": "end"},
]


@pytest.mark.parametrize("n_before", range(len(REQUESTS) + 1))
def test_a_client_that_vanishes_loses_nothing(n_before: int, tmp_path: Path) -> None:
    terms = make_terms(workers=2)
    with Conversation(terms, log=tmp_path / "whole.jsonl") as conversation:
        whole = told(conversation, *REQUESTS)
    log = tmp_path / "parts.jsonl"
    with Conversation(terms, log=log) as conversation:
        before = told(conversation, *REQUESTS[:n_before])
    with Conversation(terms, log=log) as conversation:
        assert before + told(conversation, *REQUESTS[n_before:]) == whole
    assert log.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_what_a_kill_cuts_off_is_not_obeyed(tmp_path: Path) -> None:
    log, journal = tmp_path / "log.jsonl", tmp_path / "log.jsonl.requests"
    with Conversation(make_terms(), log=log) as conversation:
        told(conversation, SUBMIT, {"do": "wait"})
    log.write_bytes(log.read_bytes()[:-20])
    journal.write_bytes(journal.read_bytes() + b'{"do":"wa')
    with Conversation(make_terms(), log=log) as conversation:
        assert len(conversation.answer({"do": "trials"})["trials"]) == 1
    assert journal.read_bytes().endswith(b'{"do":"wait"}\n')
    assert len(read_log(log).trials) == 1


def test_a_run_without_its_log_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with Conversation(make_terms(), log=log) as conversation:
        told(conversation, SUBMIT, {"do": "wait"})
    log.unlink()
    with Conversation(make_terms(), log=log, seed=1) as conversation:
        assert conversation.answer({"do": "trials"})["trials"] == []


@pytest.mark.parametrize("rate", [math.inf, math.nan, {0.1}], ids=repr)
def test_a_request_that_a_journal_cannot_hold_is_refused_and_the_run_can_be_resumed(
    rate: object, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    with Conversation(make_terms(), log=log) as conversation:
        told(conversation, SUBMIT, {"do": "wait"})
        refused = conversation.answer({**SUBMIT, "config": {**CONFIGS[0], "LearningRate": rate}})
        assert "is not JSON" in refused["error"]
    with Conversation(make_terms(), log=log) as conversation:
        assert len(conversation.answer({"do": "trials"})["trials"]) == 1


def test_refused_requests_leave_nothing_in_the_journal(tmp_path: Path) -> None:
    log, journal = tmp_path / "log.jsonl", tmp_path / "log.jsonl.requests"
    with Conversation(make_terms(), log=log) as conversation:
        told(conversation, SUBMIT)
        before = journal.read_bytes()
        for config in ({"N": "x" * 10_000}, {"N": _nested(900)}):
            (reply,) = told(conversation, {"do": "submit", "config": config})
            assert "error" in reply
        nested = conversation.answer({"do": "submit", "config": {"N": _nested(100_000)}})
        assert "error" in nested
        assert journal.read_bytes() == before
        told(conversation, {"do": "wait"})
    with Conversation(make_terms(), log=log) as resumed:
        assert len(told(resumed, {"do": "trials"})[0]["trials"]) == 1


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_journal_that_is_none_is_named(tmp_path: Path) -> None:
    log, journal = tmp_path / "log.jsonl", tmp_path / "log.jsonl.requests"
    with Conversation(make_terms(), log=log) as conversation:
        told(conversation, SUBMIT)
    journal.write_bytes(b"{}}\n")
    with pytest.raises(CorruptFile, match=r"does not hold requests .*remove it together with its log"):
        Conversation(make_terms(), log=log)


@pytest.mark.parametrize(
    ("first", "differs"),
    [
        ({"blind": 1}, "blind: the log says 1, this run None"),
        ({"client": "other"}, "arm: the log says 'other', this run 'client'"),
        ({"seed": 3}, "seed: the log says 3, this run 0"),
    ],
    ids=["blind", "client", "seed"],
)
def test_other_options_are_refused_at_once_and_end_no_run(first: dict, differs: str, tmp_path: Path) -> None:
    terms, log, journal = make_terms(budget_s=99.0), tmp_path / "log.jsonl", tmp_path / "log.jsonl.requests"
    with Conversation(terms, log=log, **first) as conversation:
        keys = conversation.answer({"do": "space"})["parameters"]
        config = {name: key.get("choices", [key.get("upper")])[0] for name, key in keys.items()}
        told(conversation, {"do": "submit", "config": config}, {"do": "wait"})
    before = log.read_bytes(), journal.read_bytes()
    said = f"(?s)is the log of another run; give a new path, or the same settings:.*{differs}"
    with pytest.raises(ProtocolMismatch, match=said):
        Conversation(terms, log=log)
    assert (log.read_bytes(), journal.read_bytes()) == before
    with Conversation(terms, log=log, **first) as conversation:
        assert conversation.answer({"do": "submit", "config": config})["trial"] == 1


RUN = [SUBMIT, {"do": "wait"}, {"do": "submit", "config": CONFIGS[1]}, {"do": "wait"}, {"do": "end"}]


@pytest.mark.parametrize(
    ("full", "n_before", "n_kept"), [("log.jsonl.requests", 2, 2), ("log.jsonl", 3, 4)], ids=["journal", "log"]
)
def test_a_full_disk_ends_a_run_that_goes_on_later(full: str, n_before: int, n_kept: int, tmp_path: Path) -> None:
    """A request that the journal cannot hold is not carried out; one that it holds is, as soon as the log can grow."""
    with Conversation(make_terms(), log=tmp_path / "whole.jsonl") as conversation:
        told(conversation, *RUN)
    log, replies = tmp_path / "log.jsonl", io.BytesIO()
    conversation = Conversation(make_terms(), log=log)
    told(conversation, *RUN[:n_before])
    more = io.BytesIO(b"".join(json.dumps(request).encode() + b"\n" for request in RUN[n_before:]))
    n_bytes = (tmp_path / full).stat().st_size + 9
    with full_disk(n_bytes), pytest.raises(OutOfSpace, match=f"{full} could not be written"):
        serve_lines(conversation, more, replies)
    (last,) = map(json.loads, replies.getvalue().splitlines())
    assert f"{full} could not be written: the disk is full" in last["error"]
    with pytest.raises(OutOfSpace, match=f"{full} could not be written"):
        conversation.answer({"do": "status"})
    with Conversation(make_terms(), log=log) as again:
        assert len(again.answer({"do": "trials"})["trials"]) == n_kept / 2
        told(again, *RUN[n_kept:])
    assert log.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    journals = [log.with_name(f"{name}.jsonl.requests").read_bytes() for name in ("log", "whole")]
    assert journals[0] == journals[1]


def test_log_and_requests_are_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for n_before in range(2):
        with Conversation(make_terms(), log=Path("~/run.jsonl")) as conversation:
            assert len(told(conversation, {"do": "trials"})[0]["trials"]) == n_before
            told(conversation, {**SUBMIT, "at": 1}, {"do": "wait"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.jsonl", "run.jsonl.requests"]


@pytest.mark.parametrize("log", ["", ".", "/"])
def test_a_log_that_is_a_folder_is_refused(log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match=r"^log=/.* is a folder; give a file"):
        Conversation(make_terms(), log=Path(log))
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_no_server_wrote_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    with pytest.raises(InvalidArgument, match=r"exists, but log\.jsonl\.requests beside it does not; give a new path"):
        Conversation(make_terms(), log=log)
    assert list(tmp_path.iterdir()) == [log]


def test_a_client_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="client='' is empty; give a name for the log"):
        Conversation(make_terms(), client="")


def test_one_session_at_a_time_writes_a_log(tmp_path: Path) -> None:
    with (
        Conversation(make_terms(), log=tmp_path / "log.jsonl"),
        pytest.raises(InvalidArgument, match="is open in another"),
    ):
        Conversation(make_terms(), log=tmp_path / "log.jsonl")
