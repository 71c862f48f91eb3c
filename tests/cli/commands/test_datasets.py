import json

from entangled_kernels.io import read_table


def test_tables_that_are_not_there(run, folder):
    shown = run("datasets", "--data-home", folder).stdout
    assert "comes with scikit-learn" in shown
    assert "ENTANGLED_KERNELS_DATA" in shown
    values = json.loads(run("datasets", "--data-home", folder, "--json").stdout)["datasets"]
    names = [entry["name"] for entry in values]
    assert names == ["digits", "concrete", "sarcos", "weather", "uwave"]
    assert [entry["state"] for entry in values] == ["yes", *["no"] * 4]
    assert values[0]["rows"] > 700
    assert str(folder) in values[1]["problem"]


def test_damaged_tables_are_told(run, folder):
    (folder / "sarcos").mkdir()
    (folder / "sarcos" / "sarcos_inv_test.mat").write_text("not it")
    values = json.loads(run("datasets", "--data-home", folder, "--json").stdout)["datasets"]
    assert values[2]["state"] == "damaged"
    assert "SHA256" in values[2]["problem"]


def test_a_sample_table(run, folder):
    shown = run("datasets", "--export", "wine.csv.gz").stdout
    assert "Wrote 138 wines to wine.csv.gz." in shown
    rows, new = read_table("wine.csv.gz"), read_table("wine-new.csv.gz")
    assert (rows.shape, new.shape) == ((138, 13), (40, 13))
    missing = {"nonflavanoid_phenols", "proanthocyanins", "proline", "od280/od315_of_diluted_wines"}
    assert {name for name in new if new[name].isna().any()} == missing
    assert rows.notna().all(axis=None)
    assert "exists already" in run("datasets", "--export", "wine.csv.gz", code=2).stderr
    values = json.loads(run("datasets", "--export", "wine.parquet", "--json").stdout)
    assert values["tables"] == ["wine.parquet", "wine-new.parquet"]
    assert set(values["targets"]) > set(values["measured"])
