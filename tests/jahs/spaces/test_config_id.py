"""The identity of a config: golden values, the same however it is asked for."""

import hashlib
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.errors import InvalidConfig
from jahs.schema import CONFIG_KEYS

SPACE = jahs.space()
ROOT = Path(__file__).parents[3]
GOLDEN = [
    line.split("\t") for line in (Path(__file__).parents[1] / "golden" / "config_ids.txt").read_text().splitlines()
]


@pytest.mark.parametrize(("expected", "config"), GOLDEN)
def test_ids_have_not_changed(expected, config):
    assert f"{jahs.config_id(json.loads(config)):016x}" == expected


def test_the_id_is_the_documented_digest():
    config = {**SPACE.default(), "Activation": "Mish", "TrivialAugment": True, "LearningRate": 1 / 3, "Op2": 4}
    numbers = (2.0, 1 / 3, 1.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 4.0, 5e-4)
    names = "Activation,LearningRate,N,Op1,Op2,Op3,Op4,Op5,Op6,Optimizer,Resolution,TrivialAugment,W,WeightDecay"
    data = names.encode() + struct.pack("<14d", *numbers)
    expected = hashlib.blake2b(data, digest_size=8, person=b"jahs-config-1").digest()
    assert jahs.config_id(config) == int.from_bytes(expected, "little")


def test_another_process_with_another_hash_seed_agrees():
    code = "import jahs; print([jahs.config_id(c) for c in jahs.space().sample(5, seed=1)])"
    env = {"PYTHONHASHSEED": "123", "PATH": ""}
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == [jahs.config_id(config) for config in SPACE.sample(5, seed=1)]


@given(st.integers(0, 2**64 - 1))
def test_columns_configs_and_one_config_agree(seed):
    columns = SPACE.sample_columns(4, seed=seed)
    configs = SPACE.sample(4, seed=seed)
    ids = jahs.config_ids(columns)
    assert ids.dtype == np.uint64
    assert ids.tolist() == jahs.config_ids(configs).tolist() == [jahs.config_id(config) for config in configs]
    assert ids.tolist() == [jahs.config_id(dict(reversed(config.items()))) for config in configs]
    assert jahs.config_ids([]).tolist() == []


def test_a_hundred_thousand_configs_have_different_ids():
    assert len(np.unique(jahs.config_ids(SPACE.sample_columns(100_000, seed=0)))) == 100_000


def test_every_bit_of_a_value_counts():
    config = SPACE.default()
    near = [config, *SPACE.neighbors(config), {**config, "LearningRate": float(np.nextafter(0.1, 1))}]
    near.append({**config, "LearningRate": float(np.float32(0.1))})
    assert len({jahs.config_id(one) for one in near}) == len(near)


def test_a_swap_of_values_between_keys_changes_the_id():
    base = SPACE.default()
    ops = [f"Op{i}" for i in range(1, 7)]
    assert len({jahs.config_id({**base, op: 1}) for op in ops} | {jahs.config_id({**base, "N": 1})}) == 7
    assert set(ops) < set(CONFIG_KEYS)


def test_a_faulty_config_has_no_id():
    with pytest.raises(InvalidConfig, match="N=2 is not one of"):
        jahs.config_id({**SPACE.default(), "N": 2})
