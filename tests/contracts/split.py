"""The contract of every division of rows: subclass `SplitContract` and define the fixture `divide`."""

import numpy as np
import pytest

from splits.kinship import find_leaks, kin
from tests.building import make_configs, with_ids


class SplitContract:
    """`divide` takes a table and returns a list of divisions; each is a tuple of row arrays, one per side."""

    @pytest.fixture
    def table(self):
        """A few hundred configs, two that are kin of others, and one that is repeated under a second id."""
        configs = make_configs(270)
        twins = {name: values[[0, 40, 80]].copy() for name, values in configs.items()}
        for name, op in (("Op1", 1), ("Op2", 1), ("Op3", 2), ("Op5", 1)):  # with Op1, Op2 and Op5 zero ...
            for columns, at in ((twins, [0, 1]), (configs, [0, 40])):
                columns[name][at] = op
        twins["Op4"][:2] = (configs["Op4"][[0, 40]] + 1) % 5  # ... nothing comes to Op4 and ...
        for columns, at in ((twins, [0, 1]), (configs, [0, 40])):
            columns["Op6"][at] = 1  # ... nothing leaves it
        joined = {name: np.concatenate([values, twins[name]]) for name, values in configs.items()}
        table = with_ids(joined)
        table["config_id"][-1] ^= np.uint64(1)
        assert len(np.unique(table["config_id"])) == 273
        assert len(np.unique(kin(table))) == 270
        return table

    @staticmethod
    def ids(table, divisions):
        return [[set(table["config_id"][rows].tolist()) for rows in sides] for sides in divisions]

    def test_every_row_is_on_one_side_once(self, divide, table):
        for sides in divide(table):
            assert np.sort(np.concatenate(sides)).tolist() == list(range(len(table["N"])))

    def test_no_side_is_empty(self, divide, table):
        assert all(len(rows) for sides in divide(table) for rows in sides)

    def test_rows_are_numbers_in_increasing_order(self, divide, table):
        for sides in divide(table):
            for rows in sides:
                assert rows.dtype == np.intp
                assert (np.diff(rows) > 0).all()

    def test_kin_stand_together(self, divide, table):
        for sides in divide(table):
            parts = np.empty(len(table["N"]), dtype=np.int64)
            for part, rows in enumerate(sides):
                parts[rows] = part
            assert find_leaks(table, parts) == []

    def test_all_rows_of_a_config_are_on_one_side(self, divide, table):
        many = {name: np.tile(values, 3) for name, values in table.items()}
        once, thrice = divide(table), divide(many)
        assert self.ids(many, thrice) == self.ids(table, once)
        assert [[len(rows) for rows in sides] for sides in thrice] == [[3 * len(r) for r in sides] for sides in once]

    def test_the_order_of_rows_does_not_matter(self, divide, table):
        order = np.random.default_rng(1).permutation(len(table["N"]))
        moved = {name: values[order] for name, values in table.items()}
        assert self.ids(moved, divide(moved)) == self.ids(table, divide(table))

    def test_the_table_is_left_as_it_is(self, divide, table):
        before = {name: values.copy() for name, values in table.items()}
        divide(table)
        assert all((table[name] == before[name]).all() for name in before)
