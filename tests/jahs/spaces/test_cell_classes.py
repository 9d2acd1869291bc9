"""The table of classes that the package carries is what the canonical keys say."""

from __future__ import annotations

import numpy as np

from jahs.spaces.cell import canonical_keys
from jahs.spaces.cell.classes import TABLE
from jahs.spaces.cell.operations import N_CELLS, all_ops
from jahs.spaces.cell.write_classes import main


def test_the_classes_found_anew_are_those_that_the_package_carries(tmp_path):
    assert main(["--out", str(tmp_path / "classes.npz")]) == 0
    with np.load(tmp_path / "classes.npz") as found, np.load(TABLE) as carried:
        np.testing.assert_array_equal(found["classes"], carried["classes"], strict=True)
        np.testing.assert_array_equal(canonical_keys(all_ops()), found["classes"])
        assert found["classes"].shape == (N_CELLS,)
