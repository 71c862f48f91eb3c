import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dask.distributed import LocalCluster

from entangled_kernels.streams import waiting
from entangled_kernels.storage import open_model
from entangled_kernels.streams.checkpoints import read_checkpoint
from entangled_kernels.tables import append_table, read_table, write_table


@pytest.fixture
def rows(folder):
    """Three files of a hundred rows each, with an id and a column of text."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(id=np.arange(300), kind="plain")
    table["y"], table["z"] = X[:, 0] + 0.1 * rng.normal(size=300), X[:, 1] * 2.0
    (folder / "rows").mkdir()
    for number in range(3):
        write_table(table[100 * number : 100 * number + 100], f"rows/{number}.parquet")
    return table


FIT = ("--targets", "y,z", "--inputs", "a,b,c", "--features", "linear", "--out", "m.model")


@pytest.mark.parametrize("table", ["rows", "rows/*.parquet"])
def test_a_folder_or_pattern(rows, run, table):
    shown = run("fit", table, *FIT, "--json").stdout
    values = json.loads(shown)
    assert values["rows"] == 300
    scores = {row["target"]: row["nmse"] for row in values["target_scores"]}
    assert 1e-3 < scores["y"] < 0.1
    assert scores["z"] < 1e-6
    saved = open_model("m.model")
    assert saved.info["inputs"] == ["a", "b", "c"]
    assert saved.model.n_samples_seen_ == 300
    run("predict", "m.model", table, "--keep", "id,y", "--intervals", "0.9", "--out", "out.csv")
    found = read_table("out.csv")
    assert list(found["id"]) == list(range(300))
    mean = saved.model.predict(rows[["a", "b", "c"]])
    np.testing.assert_allclose(found[["y predicted", "z"]], mean, rtol=1e-9)
    assert (found["z_lower"] < found["z_upper"]).all()


def test_a_large_file_is_read_in_batches(rows, run, monkeypatch):
    """What is too large for memory is streamed, and the predictions are those of all rows at once."""
    write_table(rows, "all.csv")
    run("fit", "all.csv", *FIT)
    run("predict", "m.model", "all.csv", "--out", "once.parquet")
    monkeypatch.setattr("entangled_kernels.cli.batches.GROWTH", 1e9)
    run("predict", "m.model", "all.csv", "--out", "batches.parquet")
    pd.testing.assert_frame_equal(read_table("once.parquet"), read_table("batches.parquet"))
    run("predict", "m.model", "all.csv", "--out", "batches.arrow")
    pd.testing.assert_frame_equal(read_table("once.parquet"), read_table("batches.arrow"))
    assert "npz" in run("predict", "m.model", "all.csv", "--out", "no.npz", code=3).stderr.lower()


def test_text_is_left_out_unless_named(rows, run):
    shown = run("fit", "rows", "--targets", "y,z", "--features", "linear", "--out", "m.model")
    assert "left out, since they hold no numbers: 'kind'" in shown.stderr
    assert open_model("m.model").info["inputs"] == ["a", "b", "c", "id"]
    more = ("--targets", "y", "--inputs", "a,kind", "--features", "linear", "--out", "other.model")
    assert "column 'kind' holds text" in run("fit", "rows", *more, code=3).stderr
    assert "--encode needs" in run("fit", "rows", *FIT, "--encode", "--force", code=2).stderr


def test_a_checkpoint_is_gone_on_from(rows, run, monkeypatch):
    monkeypatch.setattr(waiting, "FEATURE_SAMPLE", 50)
    good = read_table("rows/2.parquet")
    write_table(good.assign(b=np.where(good["id"] == 250, np.nan, good["b"])), "rows/2.parquet")
    error = run("fit", "rows", *FIT, "--checkpoint", "state", code=3).stderr
    assert "2.parquet, rows 0 to 99" in error
    assert read_checkpoint("state").facts["n_rows"] == 200
    write_table(good, "rows/2.parquet")
    # A file that changed in size is another one.
    again = run("fit", "rows", *FIT, "--checkpoint", "state", code=3)
    assert "checkpoint of another fit" in again.stderr
    Path("state").unlink()
    run("fit", "rows", *FIT, "--checkpoint", "state")
    first = open_model("m.model").model.coef_
    run("fit", "rows", *FIT, "--checkpoint", "state", "--force")
    np.testing.assert_array_equal(open_model("m.model").model.coef_, first)


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
    options = ("--targets", "y,z", "--inputs", "a,b,c", "--methods", "KRR", "--repeats", "2", "--json")
    shown = run("compare", "all.csv", *options, "--train-sizes", "30", "--dask", address).stdout
    here = run("compare", "all.csv", *options, "--train-sizes", "30").stdout
    errors = [[record["nmse"] for record in json.loads(text)["records"]] for text in (shown, here)]
    np.testing.assert_allclose(*errors, rtol=1e-9)


def test_a_table_appears_when_it_is_complete(folder):
    with pytest.raises(RuntimeError), append_table("t.csv") as append:  # noqa: PT012
        append(pd.DataFrame({"a": [1]}))
        raise RuntimeError
    assert list(folder.iterdir()) == []
