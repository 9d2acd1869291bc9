"""Folders of runs that nobody trained: a protocol, configs, and tables in which most values are 1."""

import dataclasses
import json

import numpy as np

from jahs.files.tables import typed, write_table
from jahs.schema import CONFIG_COLUMNS, RUNS_FORMAT
from jahs.tasks.definitions import TASKS
from pipeline.protocol import protocol_digest, protocol_facts
from pipeline.sampling import config_table

SHRUNK = dataclasses.replace(TASKS["digits"], n_train=300, n_valid=280, n_test=100, max_epoch=2, index_digest=None)


def filled(columns, n_rows, **values):
    """A table of these columns; every value that is not given is 1."""
    return typed({**dict.fromkeys(columns, np.ones(n_rows, int)), **values}, columns)


def make_folder(path, task, n_configs):
    """Write a folder of the first configs, as an earlier version did: without an index."""
    path.mkdir(exist_ok=True)
    content = {"format": RUNS_FORMAT, "digest": protocol_digest(task), "protocol": protocol_facts(task)}
    (path / "protocol.json").write_text(json.dumps(content))
    (path / "index.json").unlink(missing_ok=True)
    write_table(path / "configs.parquet", config_table(0, n_configs), CONFIG_COLUMNS)
    return path
