"""A published table, imported, is split and read for models as runs of our own are, and leaks nothing."""

import numpy as np

from jahs.published.table import import_table
from jahs.schema import CONFIG_KEYS
from splits.check import check_split
from splits.make import main
from splits.recorded import read_recorded
from splits.split import read_split
from tests.building import make_configs
from tests.jahs.published.test_table import imported
from tests.published_files import frame_bytes, tar_bytes
from tests.published_tables import N_EPOCHS, TASK, make_columns


def test_an_imported_table_gets_a_split_that_leaks_nothing(tmp_path):
    # Every group has ten configs, one of them under two model ids.
    n_configs = 27 * 10
    configs = make_configs(n_configs)
    twice = {key: np.append(configs[key], configs[key][:27]) for key in CONFIG_KEYS}
    columns = make_columns(n_configs + 27, configs=twice, n_epochs=2)
    columns["features", "epoch"] = np.where(columns["features", "epoch"] == 2, N_EPOCHS, 1)
    path = tmp_path / "metric_data.tar"
    path.write_bytes(tar_bytes({f"{TASK.name}/raw.pkl.gz": frame_bytes(columns)}))
    folder = import_table(path, tmp_path)[TASK.name]
    assert main([str(folder), "--out", str(tmp_path / "split.json")]) == 0
    recorded, split = read_recorded(folder), read_split(tmp_path / "split.json")
    assert (recorded.n_seeds == 2).sum() == 27
    assert check_split(recorded, split)
    assert len(split.config_ids) == n_configs


def test_models_find_what_they_need_in_an_imported_table(tmp_path):
    from surrogate.data.measurements import read_measurements

    columns = make_columns(3)
    folder, *_ = imported(tmp_path, columns)
    measured = read_measurements(folder)
    assert measured.task == TASK
    assert len(measured.runs["epoch"]) == 3 * N_EPOCHS
    assert len(measured.profile["latency"]) == 3
