"""The command on a Dask cluster gives what it gives in memory and in batches."""

import json

import numpy as np
import pandas as pd
import pytest
from dask.distributed import LocalCluster

from entangled_kernels.cli.models import read_on_cluster
from entangled_kernels.io import open_model, read_table, write_table
from entangled_kernels.streams import read_batches

FIT = "fit rows --targets y,z --inputs a,b,c --features linear --out m.model --force"


@pytest.fixture(scope="module")
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


@pytest.mark.slow
def test_fit_on_a_cluster(rows, run, address):
    rows["town"] = [f"town {place // 15}" for place in range(300)]
    for number in range(3):
        write_table(rows[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    for groups in ("", "--groups town"):
        ours = json.loads(run(f"{FIT} {groups} --json --dask {address}").stdout)
        coef = open_model("m.model").model.coef_
        assert json.loads(run(f"{FIT} {groups} --json").stdout)["nmse"] == pytest.approx(
            ours["nmse"], rel=1e-6
        )
        np.testing.assert_allclose(coef, open_model("m.model").model.coef_, rtol=1e-8)
    error = run(f"{FIT} --time-ordered --dask {address}", code=2).stderr
    assert "--dask reads rows in no order; leave out --dask or --time-ordered" in error
    error = run(f"{FIT} --dask tcp://127.0.0.1:9", code=2).stderr
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in error


def test_compare_on_a_cluster(rows, run, address):
    write_table(rows, "all.csv")
    compare = "compare all.csv --targets y,z --inputs a,b,c --methods KRR --repeats 2 -n 30 --json"
    shown = [run(compare).stdout, run(f"{compare} --dask {address}").stdout]
    errors = [[record["nmse"] for record in json.loads(text)["records"]] for text in shown]
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
