"""Tables become models in memory, in batches and on a cluster."""

import json

import numpy as np
import pandas as pd
import pytest
from dask.distributed import LocalCluster

from entangled_kernels.cli.models import read_on_cluster
from entangled_kernels.io import open_model, read_table, write_table
from entangled_kernels.streams import read_batches

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


def test_compare_on_a_cluster(rows, run, address):
    write_table(rows, "all.csv")
    options = (
        "--targets",
        "y,z",
        "--inputs",
        "a,b,c",
        "--methods",
        "KRR",
        "--repeats",
        "2",
        "--json",
    )
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
    fit = (
        "fit",
        "rows",
        "--targets",
        "y,z",
        "--inputs",
        "a,b,c",
        "--features",
        "linear",
        "--out",
        "m.model",
    )
    by_town = ("--groups", "town", "--json", "--force")
    on_cluster = json.loads(run(*fit, *by_town, "--dask", address).stdout)
    assert on_cluster["nmse"] == pytest.approx(
        json.loads(run(*fit, *by_town).stdout)["nmse"], rel=1e-6
    )
    shown = run(*fit, "--time-ordered", "--force", "--dask", address, code=2).stderr
    assert "--dask reads rows in no order; leave out --dask or --time-ordered" in shown
