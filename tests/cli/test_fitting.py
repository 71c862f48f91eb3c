import numpy as np
import pytest

from entangled_kernels.cli.fitting import fit_table
from entangled_kernels.cli.screen import Screen
from entangled_kernels.cli.training_table import TrainingTable
from entangled_kernels.streams import read_batches
from entangled_kernels.tables import write_table

INPUTS, TARGETS = list("abc"), list("yz")


def in_memory(rows):
    return TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], rows[TARGETS], None, [])


def test_folds_are_no_more_than_rows(rows):
    model = fit_table(Screen(), in_memory(rows[:4]), "linear", folds=10, seed=0, jobs=None)
    assert model.cv == 4


@pytest.mark.parametrize("seed", [0, 5])
def test_what_is_asked_for_is_passed_on(rows, seed):
    model = fit_table(Screen(), in_memory(rows), "linear", folds=3, seed=seed, jobs=1)
    assert (model.cv, model.random_state, model.n_jobs) == (3, seed, 1)
    assert list(model.feature_names_in_) == INPUTS
    assert list(model.target_names_) == TARGETS


def test_blanks_are_counted_as_batches_are_read(rows, folder):
    rows.loc[10:19, "y"] = np.nan
    rows.loc[15, "z"] = np.nan
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    reader = read_batches("rows", inputs=INPUTS, targets=TARGETS, batch_rows=40)
    table = TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], None, reader, [])
    fit_table(Screen(), table, "linear", folds=3, seed=0, jobs=None)
    assert (table.blanks.cells, table.blanks.rows, table.blanks.empty_rows) == ({"y": 9}, 300, 1)


def test_batches_leave_a_checkpoint(rows, folder):
    reader = read_batches("rows", inputs=INPUTS, targets=TARGETS)
    table = TrainingTable(INPUTS, TARGETS, [], rows[INPUTS], None, reader, [])
    model = fit_table(Screen(), table, "linear", folds=3, seed=0, jobs=None, checkpoint=folder / "state")
    assert (folder / "state").exists()
    assert model.n_samples_seen_ == 300
    here = fit_table(Screen(), in_memory(rows), "linear", folds=3, seed=0, jobs=None)
    np.testing.assert_allclose(model.predict(rows[INPUTS]), here.predict(rows[INPUTS]), atol=1e-2)
