"""Tables become models in memory, in batches and on a cluster."""

import json

import numpy as np
import pandas as pd
import pytest
from dask.distributed import LocalCluster

from entangled_kernels.cli.errors import CommandError
from entangled_kernels.cli.fitting import fit_table, read_on_cluster
from entangled_kernels.cli.screen import Screen
from entangled_kernels.cli.tables import TrainingTable
from entangled_kernels.io import open_model, read_table, write_table
from entangled_kernels.streams import read_batches

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


FIT = ("--targets", "y,z", "--inputs", "a,b,c", "--features", "linear", "--out", "m.model")


@pytest.fixture
def address():
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        host="127.0.0.1",
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster.scheduler_address


def test_fit_on_a_cluster(rows, run, address):
    run("fit", "rows", *FIT, "--dask", address)
    ours = open_model("m.model").model
    run("fit", "rows", *FIT, "--force")
    np.testing.assert_allclose(ours.coef_, open_model("m.model").model.coef_, rtol=1e-8)
    elsewhere = run("fit", "rows", *FIT, "--force", "--dask", "tcp://127.0.0.1:9", code=2)
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in elsewhere.stderr


def test_blank_targets_on_a_cluster(rows, run, address):
    rows.loc[::4, "y"] = np.nan
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    found = json.loads(run("fit", "rows", *FIT, "--dask", address, "--json").stdout)
    assert (found["blank_cells"], found["rows"]) == ({"y": 75}, 300)
    ours = open_model("m.model").model
    run("fit", "rows", *FIT, "--force")
    # The second target is twice an input, so that its other coefficients are rounding, about 1e-10.
    np.testing.assert_allclose(ours.coef_, open_model("m.model").model.coef_, rtol=1e-6, atol=1e-12)


def test_compare_on_a_cluster(rows, run, address):
    write_table(rows, "all.csv")
    options = ("--targets", "y,z", "--inputs", "a,b,c", "--methods", "KRR", "--repeats", "2", "--json")
    shown = run("compare", "all.csv", *options, "--train-sizes", "30", "--dask", address).stdout
    here = run("compare", "all.csv", *options, "--train-sizes", "30").stdout
    errors = [[record["nmse"] for record in json.loads(text)["records"]] for text in (shown, here)]
    np.testing.assert_allclose(*errors, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask itself
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_of_a_cluster_are_those_of_the_files(rows, kind):
    if kind == "csv":
        for number in range(3):
            read_table(f"rows/{number}.parquet").to_csv(f"rows/{number}.csv", index=False, sep=";")
    reader = read_batches(f"rows/*.{kind}", inputs=["kind", "b"], targets=["z"], groups="id")
    X, Y, groups = (frame.compute().reset_index(drop=True) for frame in read_on_cluster(reader))
    pd.testing.assert_frame_equal(X, rows[["kind", "b"]], check_dtype=False)
    pd.testing.assert_frame_equal(Y, rows[["z"]])
    np.testing.assert_array_equal(groups, rows["id"])


def test_groups_on_a_cluster_are_those_of_batches(rows, run, address):
    rows["town"] = [f"town {place // 15}" for place in range(300)]
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    fit = ("fit", "rows", "--targets", "y,z", "--inputs", "a,b,c", "--features", "linear", "--out", "m.model")
    by_town = ("--groups", "town", "--json", "--force")
    on_cluster = json.loads(run(*fit, *by_town, "--dask", address).stdout)
    assert on_cluster["nmse"] == pytest.approx(json.loads(run(*fit, *by_town).stdout)["nmse"], rel=1e-6)
    shown = run(*fit, "--time-ordered", "--force", "--dask", address, code=2).stderr
    assert "--dask reads rows in no order; leave out --dask or --time-ordered" in shown


def test_text_is_encoded_on_a_cluster(rows, run, address):
    rows["kind"] = np.where(rows["id"] % 2 == 0, "even", "odd")
    rows["y"] += rows["kind"] == "odd"
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    options = ("--targets", "y", "--inputs", "a,kind", "--features", "linear", "--encode", "--out", "m.model")
    run("fit", "rows", *options, "--dask", address)
    ours = open_model("m.model").model
    run("fit", "rows", *options, "--force")
    np.testing.assert_allclose(ours.coef_, open_model("m.model").model.coef_, rtol=1e-8)


def test_files_of_several_kinds_are_refused(rows):
    write_table(rows, "rows/all.csv")
    with pytest.raises(CommandError, match="Parquet files or CSV files, all of one kind"):
        read_on_cluster(read_batches("rows", inputs=["a"], targets=["y"]))
