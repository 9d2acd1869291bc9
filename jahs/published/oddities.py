"""Oddities of a published table: found, counted and listed; nothing is repaired here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.files.tables import Table, concatenate, take, typed

FINDINGS: Final[Mapping[str, str]] = {
    "invalid_config": "A model whose config is not in the space. Left out.",
    "changing_config": "A model whose config is not the same in all of its rows. Left out.",
    "repeated_epoch": "A model with two rows for one epoch, or an invalid epoch. Left out.",
    "incomplete_run": "A model without the last epoch (value: its last one). Left out.",
    "lost_last_row": "A model that ends one epoch early (value: its last one), probably because its last row had NaN "
    "and was removed: later rows may have moved up by one, as in nan_last_row. Kept.",
    "impossible_row": "A row with an accuracy outside of 0 to 100, or with a loss, runtime or latency that is negative "
    "or beyond float32 (value: its epoch). The row is left out.",
    "nan_row": "A row with a value that is NaN or infinite (value: its epoch). The row is left out.",
    "nan_last_row": "A model whose last row has NaN: an evaluation that failed moved later rows up by one, so its "
    "validation and test values may be one epoch too early. Kept, but for the row.",
    "repeated_config": "A config under several model ids (value: the first of them). Kept, as further seeds.",
    "same_run": "A repeated config with the validation accuracies of an earlier model at every epoch "
    "(value: that model). Kept.",
    "shared_by_split": "A config on several sides of the published split (value: 1 train and validation, 2 train and "
    "test, 3 validation and test). Kept; make a split of its own.",
    "flops_label": "A model whose FLOPS is not exact for its config's network (value: the label, expected: the exact "
    "one, both in millions). Not used: exact multiply-adds are computed.",
    "size_label": "A model whose size_MB is not exact for its config's network (value: the label, expected: the exact "
    "one, both in millions). Not used: exact parameters are computed.",
    "falling_runtime": "A model whose runtime falls from one epoch to the next (value: the epoch). Kept.",
    "flat_tail": "A model that learns at first and whose validation accuracy is then constant for at least the last "
    "fifth of its epochs, as with a learning rate of 0 (value: the first such epoch). Kept.",
    "constant_run": "A model whose validation accuracy never changes. Kept.",
    "changed_row": "A row of the split files that is not the row of that label in raw (value: its label). Not used.",
}
"""Every kind of finding, and how it is treated."""

ODDITY_COLUMNS: Final[Mapping[str, str]] = {
    "finding": "string",
    "model_id": "int64",
    "config_id": "uint64",
    "group": "string",
    "value": "float64",
    "expected": "float64",
}
"""One row per finding; config_id is 0 for an invalid config."""

_LISTED: Final = 5


class Oddities:
    """Collects findings about models, each with its config and its fidelity group."""

    def __init__(self, model_id: NDArray[np.int64], config_id: NDArray[np.uint64], group: NDArray[np.str_]) -> None:
        self._models: Table = {"model_id": model_id, "config_id": config_id, "group": group}
        self._parts: list[Table] = []

    def note(
        self,
        finding: str,
        models: NDArray[np.integer],
        value: NDArray[Any] | float = np.nan,  # Any: whatever can be a float
        expected: NDArray[Any] | float = np.nan,  # Any: as above
    ) -> None:
        """Note a finding about the models at these positions."""
        assert finding in FINDINGS
        found = {"finding": finding, **take(self._models, models), "value": value, "expected": expected}
        self._parts.append(typed(found, ODDITY_COLUMNS))

    def table(self) -> Table:
        """Return every finding (`ODDITY_COLUMNS`), in the order of `FINDINGS`."""
        findings = concatenate(self._parts, ODDITY_COLUMNS)
        place = {name: i for i, name in enumerate(FINDINGS)}
        places = np.array([place[name] for name in findings["finding"].tolist()])
        order = np.lexsort((findings["model_id"], places))
        return take(findings, order)

    def summary(self) -> dict[str, Any]:  # Any: JSON
        """Return each kind's counts (in total, of models, by fidelity group) and the first models with it."""
        findings = self.table()
        return {name: _counts(findings, findings["finding"] == name, text) for name, text in FINDINGS.items()}


def _counts(findings: Table, is_kind: NDArray[np.bool_], text: str) -> dict[str, Any]:  # Any: JSON
    groups, counts = np.unique(findings["group"][is_kind], return_counts=True)
    models = np.unique(findings["model_id"][is_kind])
    return {
        "what": text,
        "n_found": int(is_kind.sum()),
        "n_models": len(models),
        "by_group": dict(zip(groups.tolist(), counts.tolist(), strict=True)),
        "first_model_ids": models[:_LISTED].tolist(),
    }
