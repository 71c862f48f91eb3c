import json
from pathlib import Path

import numpy as np
import pandas as pd

from entangled_kernels.io import open_model, read_table, write_table
from entangled_kernels.streams import row_stream as waiting
from entangled_kernels.streams.checkpoints import read_checkpoint

FIT = "fit rows --targets y,z --inputs a,b,c --features linear --out m.model"


def test_a_folder_and_a_pattern(rows, run):
    values = json.loads(run(f"{FIT} --json").stdout)
    assert values["rows"] == 300
    scores = {row["target"]: row["nmse"] for row in values["target_scores"]}
    assert 1e-3 < scores["y"] < 0.1
    assert scores["z"] < 1e-6
    saved = open_model("m.model")
    assert saved.info["inputs"] == ["a", "b", "c"]
    assert saved.model.n_samples_seen_ == 300
    run("predict m.model rows/*.parquet --keep id,y --intervals 0.9 --out out.csv")
    found = read_table("out.csv")
    assert list(found["id"]) == list(range(300))
    mean = saved.model.predict(rows[["a", "b", "c"]])
    np.testing.assert_allclose(found[["y predicted", "z"]], mean, rtol=1e-9)
    assert (found["z_lower"] < found["z_upper"]).all()


def test_a_large_file_is_read_in_batches(rows, run, monkeypatch):
    """What is too large for memory is streamed; predictions are those of all rows at once."""
    write_table(rows, "all.csv")
    run(FIT)
    run("predict m.model all.csv --out once.parquet")
    monkeypatch.setattr("entangled_kernels.cli.files.GROWTH", 1e9)
    run("predict m.model all.csv --out batches.parquet")
    pd.testing.assert_frame_equal(read_table("once.parquet"), read_table("batches.parquet"))
    run("predict m.model all.csv --out batches.arrow")
    pd.testing.assert_frame_equal(read_table("once.parquet"), read_table("batches.arrow"))
    assert "NPZ" in run("predict m.model all.csv --out no.npz", code=3).stderr


def test_a_checkpoint_is_gone_on_from(rows, run, monkeypatch):
    monkeypatch.setattr(waiting, "FEATURE_SAMPLE", 50)
    good = read_table("rows/2.parquet")
    write_table(good.assign(b=good["b"].where(good["id"] != 250)), "rows/2.parquet")
    error = run(f"{FIT} --checkpoint state", code=3).stderr
    assert "2.parquet, rows 1 to 100" in error
    assert "row 51 of them, column 'b'" in error
    assert read_checkpoint("state").facts["n_rows"] == 200
    # The rest goes on when it is mended, but not where what was read before has changed.
    write_table(good, "rows/2.parquet")
    first_rows = read_table("rows/0.parquet")
    write_table(first_rows.assign(a=-first_rows["a"]), "rows/0.parquet")
    error = run(f"{FIT} --checkpoint state", code=3).stderr
    assert "the first rows, or the feature map fitted on them, are not those of state" in error
    write_table(first_rows, "rows/0.parquet")
    run(f"{FIT} --checkpoint state")
    first = open_model("m.model").model.coef_
    run(f"{FIT} --force")
    np.testing.assert_allclose(open_model("m.model").model.coef_, first, rtol=1e-10)
    run(f"{FIT} --checkpoint state --force")
    np.testing.assert_array_equal(open_model("m.model").model.coef_, first)


def test_rows_of_batches_are_those_of_the_file(rows, run):
    run(FIT)
    (Path("rows") / "0.parquet").unlink()
    second = read_table("rows/1.parquet")
    write_table(second.assign(b=second["b"].where(second["id"] != 156)), "rows/1.parquet")
    error = run("predict m.model rows --out p.csv", code=3).stderr
    assert "1.parquet: row 57, column 'b': the cell is empty" in error
    assert not Path("p.csv").exists()
