"""A list of configs is read whole, with every fault of every line, or refused."""

import json

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch, UnknownName
from jahs.schema import CONFIG_KEYS, CONFIG_TABLE_COLUMNS
from jahs.spaces.columns import rows
from pipeline.proposals import read_proposals

CONFIGS = jahs.space().sample(5, seed=3)


def read(tmp_path, *lines, source="best"):
    path = tmp_path / "proposals.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return read_proposals(path, source, protocol="p1")


def test_a_list_is_read_in_its_order_with_what_it_leaves_out(tmp_path):
    contents = [
        CONFIGS[3],
        {"config": CONFIGS[1]},
        {"config": CONFIGS[2], "seeds": [2, 0], "round": 4, "release": "ab" * 16, "protocol": "p1", "source": "best"},
    ]
    configs, seeds = read(tmp_path, contents[0], b"", *contents[1:], b"  ")
    assert rows({key: configs[key] for key in CONFIG_KEYS}) == [CONFIGS[3], CONFIGS[1], CONFIGS[2]]
    assert configs["config_id"].tolist() == [jahs.config_id(CONFIGS[i]) for i in (3, 1, 2)]
    assert list(configs) == list(CONFIG_TABLE_COLUMNS)
    assert seeds == [[0], [0], [2, 0]]
    assert configs["config_index"].tolist() == [-1, -1, -1]
    assert configs["source"].tolist() == ["best"] * 3
    assert configs["round"].tolist() == [0, 0, 4]
    assert configs["release"].tolist() == ["", "", "ab" * 16]
    assert configs["W"].dtype == np.int8


BAD_LINES = [
    (b"{", "is not JSON: Expecting property name"),
    (b'{"N": "\xff"}', "is not JSON: bytes that are not UTF-8"),
    (b"[" * 100_000, "is not JSON: "),
    (b"3", "3 is not an object of keys and values"),
    ({"config": [1]}, "is not an object of 14 keys"),
    (
        {"config": CONFIGS[0], "seed": [0]},
        "'seed' is not one of the keys config, seeds, round, release, protocol, source",
    ),
    ({**CONFIGS[0], "N": 4}, "N=4 is not one of 1, 3, 5"),
    ({"config": CONFIGS[0], "seeds": []}, "seeds=[] is not a list of different integers >= 0"),
    ({"config": CONFIGS[0], "seeds": [1, 1]}, "seeds=[1, 1] is not a list of different integers"),
    ({"config": CONFIGS[0], "seeds": [True]}, "seeds=[True] is not a list"),
    ({"config": CONFIGS[0], "seeds": [-1]}, "seeds=[-1] is not a list"),
    ({"config": CONFIGS[0], "seeds": [[0]]}, "seeds=[[0]] is not a list"),
    ({"config": CONFIGS[0], "seeds": 0}, "seeds=0 is not a list"),
    ({"config": CONFIGS[0], "round": 1.0}, "round=1.0 is not an integer >= 0"),
    ({"config": CONFIGS[0], "round": 2**70}, "is not an integer >= 0"),
    ({"config": CONFIGS[0], "release": "v1"}, "release='v1' is not a digest: 8 to 64 hex digits"),
    ({"config": CONFIGS[0], "release": 7}, "release=7 is not a digest"),
    ({"config": CONFIGS[0], "source": "poor"}, "source='poor', but --source is 'best'"),
    ({"config": CONFIGS[0], "source": ["best"]}, "but --source is 'best'"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=[message[:25] for _, message in BAD_LINES])
def test_what_a_line_must_not_be_is_named_with_its_number(tmp_path, line, message):
    with pytest.raises(InvalidArgument) as caught:
        read(tmp_path, CONFIGS[4], b"", line)
    assert "proposals.jsonl line 3: " in str(caught.value)
    assert message in str(caught.value)


def test_every_fault_of_a_list_is_named_at_once(tmp_path):
    bad = {"config": {**CONFIGS[1], "N": 4, "W": 5}}
    with pytest.raises(InvalidArgument) as caught:
        read(tmp_path, bad, CONFIGS[0], {"config": CONFIGS[0], "seeds": [1], "round": -1}, b"{")
    lines = str(caught.value).splitlines()
    starts = [line.split("proposals.jsonl line ")[1][:4] for line in lines]
    assert starts == ["1: N", "1: W", "3: r", "3: t", "4: i"]
    assert "the config of line 2 again; list it once, with all its seeds" in lines[3]
    with pytest.raises(InvalidArgument, match=r"\.\.\. and 40 more"):
        read(tmp_path, *[{**CONFIGS[0], "N": 4, "W": 5}] * 30)


@pytest.mark.parametrize("lines", [[], [b""], [b" ", b"\t"]])
def test_an_empty_list_is_refused(tmp_path, lines):
    with pytest.raises(InvalidArgument, match="lists no config; write one per line"):
        read(tmp_path, *lines)


def test_a_list_for_another_protocol_is_refused(tmp_path):
    with pytest.raises(ProtocolMismatch, match="1 configs were proposed for another protocol than p1: line 2 for 'p2'"):
        read(tmp_path, CONFIGS[0], {"config": CONFIGS[1], "protocol": "p2"})


def test_a_list_of_two_releases_is_refused(tmp_path):
    contents = [
        {"config": config, "release": digest * 16} for config, digest in zip(CONFIGS, ("ab", "ab", "cd"), strict=False)
    ]
    assert len(read(tmp_path, *contents[:2], CONFIGS[4])[1]) == 3
    with pytest.raises(InvalidArgument, match=r"line 3: release='cdcd.*but line 1 has 'abab.*a file of its own"):
        read(tmp_path, *contents)


def test_a_source_that_does_not_exist_lists_those_that_do(tmp_path):
    with pytest.raises(UnknownName, match=r"did you mean 'best'.*full, best, disagreement, seeds, paired, poor, live"):
        read(tmp_path, CONFIGS[0], source="bets")
    with pytest.raises(UnknownName, match="source='uniform' does not exist"):
        read(tmp_path, CONFIGS[0], source="uniform")


def test_a_list_that_is_not_there_is_missing(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(MissingData, match=r"cannot be read: .*; name a file with a config per line"):
            read_proposals(path, "best", protocol="p1")
