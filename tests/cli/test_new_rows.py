from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.models import NewRows
from entangled_kernels.cli.options import ReadingOptions
from entangled_kernels.cli.screen import Screen
from entangled_kernels.storage import SavedModel
from entangled_kernels.tables import TableError, write_table

INPUTS, TARGETS = list("abc"), list("yz")


@pytest.fixture
def saved(rows):
    return SavedModel(EntangledKernelRidge().fit(rows[INPUTS], rows[TARGETS]), {}, {})


def read(saved, table, kept=(), *, measured, max_memory=4096):
    new = NewRows(saved, Path("m.model"), list(kept), measured=measured, options=ReadingOptions())
    return list(new.parts(Screen(), Path(table), max_memory))


def test_columns_are_those_of_the_model(rows, saved):
    rows[["z", "c", "b", "a", "id"]].to_csv("t.csv", index=False)
    (part,) = read(saved, "t.csv", measured=False)
    pd.testing.assert_frame_equal(part.X, rows[INPUTS])
    assert part.given is None
    (part,) = read(saved, "t.csv", measured=True)
    pd.testing.assert_frame_equal(part.given, rows[["z"]])


def test_batches_hold_the_same_rows(rows, saved):
    rows.loc[::7, "y"] = np.nan
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    parts = read(saved, "rows", ["id"], measured=True)
    assert len(parts) == 3
    for field in ("X", "given"):
        joined = pd.concat([getattr(part, field) for part in parts], ignore_index=True)
        pd.testing.assert_frame_equal(joined, rows[INPUTS if field == "X" else TARGETS])
    assert list(parts[0].frame.columns) == ["a", "b", "c", "id", "y", "z"]
    assert "y" not in read(saved, "rows", measured=False)[0].frame


def test_cells_are_named_by_their_rows(rows, saved):
    write_table(rows[200:].assign(z=np.where(rows["id"][200:] == 203, np.inf, 1.0)), "rows/2.parquet")
    with pytest.raises(TableError, match=r"2.parquet: row 4, column 'z': inf is not finite"):
        read(saved, "rows", measured=True)
    rows.assign(b=np.where(rows["id"] == 3, np.nan, 1.0)).to_csv("t.csv", index=False)
    with pytest.raises(TableError, match="row 4, column 'b': the cell is empty"):
        read(saved, "t.csv", measured=True)


def test_models_without_medians(rows, saved):
    new = NewRows(saved, Path("m.model"), [], measured=False, options=ReadingOptions(missing="drop"))
    rows.loc[[2, 5], "a"] = np.nan
    assert list(new.check(rows, Path("t.csv")).X.index[:5]) == [0, 1, 3, 4, 6]
    assert (new.n_left_out, new.n_rows) == (2, 300)
    with pytest.raises(CommandError, match=r"m.model knows no medians; fit it with --missing median"):
        NewRows(saved, Path("m.model"), [], measured=False, options=ReadingOptions(missing="median"))
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    model = EntangledKernelRidge(filled).fit(rows[INPUTS], rows[TARGETS])
    new = NewRows(SavedModel(model, {}, {}), Path("m.model"), [], measured=False, options=ReadingOptions())
    assert new.check(rows, Path("t.csv")).X["a"].isna().sum() == 2
