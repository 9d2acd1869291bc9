"""Every splitter holds the contract of splits."""

import numpy as np
import pytest

from jahs.schema import SPLIT_PARTS
from splits.folds import k_folds
from splits.partition import partition
from tests.contracts.split import SplitContract
from tests.splits.test_partition import record


class TestPartition(SplitContract):
    @pytest.fixture
    def divide(self):
        def divided(table):
            ids, first = np.unique(table["config_id"], return_index=True)
            configs = {name: values[first] for name, values in table.items()}
            split = partition(record(configs, n_seeds=np.where(ids % np.uint64(10) == 0, 3, 1)), seed=3)
            parts = split.parts_of(table["config_id"])
            return [tuple(np.flatnonzero(parts == number) for number in range(len(SPLIT_PARTS)))]

        return divided


class TestKFolds(SplitContract):
    @pytest.fixture(params=[2, 5])
    def divide(self, request):
        return lambda table: list(k_folds(table, request.param, seed=3))
