import json


def test_tables_that_are_not_there(run, folder):
    result = run("datasets", "--data-home", folder)
    assert "comes with scikit-learn" in result.stdout
    assert "ENTANGLED_KERNELS_DATA" in result.stdout
    values = json.loads(run("datasets", "--data-home", folder, "--json").stdout)["datasets"]
    assert [entry["name"] for entry in values] == ["digits", "concrete", "sarcos", "weather", "uwave"]
    assert [entry["state"] for entry in values] == ["yes", "no", "no", "no", "no"]
    assert values[0]["rows"] > 700
    assert str(folder) in values[1]["problem"]


def test_damaged_tables_are_told(run, folder):
    (folder / "sarcos").mkdir()
    (folder / "sarcos" / "sarcos_inv_test.mat").write_text("not it")
    values = json.loads(run("datasets", "--data-home", folder, "--json").stdout)["datasets"]
    assert values[2]["state"] == "damaged"
    assert "SHA256" in values[2]["problem"]
