"""The descriptions of the data are valid Croissant, and records are read through them. `make docs` calls this.

Apart from the other tests because it needs mlcroissant, which only the environment of the documentation has.
"""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import mlcroissant
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised by the dependencies of mlcroissant

FILES = sorted((Path(__file__).resolve().parent.parent / "data").glob("*/croissant.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_a_description_is_valid_and_lacks_only_the_date_of_publication(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        mlcroissant.Dataset(jsonld=file)
    warnings = [line for record in caplog.records for line in record.getMessage().splitlines() if "  -  " in line]
    assert [line for line in warnings if "datePublished" not in line] == []
    assert "not standard" not in caplog.text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
@pytest.mark.parametrize("name", ["configs", "profile"])
def test_records_that_are_read_through_a_description_are_the_recorded_ones(file: Path, name: str) -> None:
    rows = pq.read_table(file.parent / "runs" / f"{name}.parquet").slice(0, 3).to_pylist()
    records = itertools.islice(mlcroissant.Dataset(jsonld=file).records(name), 3)
    for row, record in zip(rows, records, strict=True):
        for column, value in row.items():
            read = record[f"{name}/{column}"]
            assert (read.decode() if isinstance(read, bytes) else read) == pytest.approx(value)
