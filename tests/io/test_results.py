import json

import numpy as np
import pytest

from entangled_kernels.io import ExperimentResults, software_versions


def example():
    records = [
        {"n": n, "method": method, "split": split, "nmse": 0.1 * n + split, "note": "a, b"}
        for n in (10, 20)
        for method in ("KRR", "EKL")
        for split in range(3)
    ]
    return ExperimentResults(
        "toy",
        "A toy",
        records,
        paper=[{"n": 10, "method": "EKL", "nmse": 0.5}],
        meta={"seed": np.int64(3), "versions": software_versions()},
        arrays={"K": np.arange(6.0).reshape(2, 3)},
    )


def test_round_trip(tmp_path):
    results = example()
    paths = results.save(tmp_path)
    assert [path.name for path in paths] == ["toy.json", "toy.csv", "toy.npz"]
    again = ExperimentResults.load(paths[0])
    assert (again.name, again.title, again.records, again.paper) == (
        results.name,
        results.title,
        results.records,
        results.paper,
    )
    assert again.meta["seed"] == 3
    np.testing.assert_array_equal(again.arrays["K"], results.arrays["K"])
    assert paths[1].read_text().splitlines()[1] == '10,KRR,0,1.0,"a, b"'


def test_summary():
    rows = example().summary()
    assert [(row["n"], row["method"], row["count"]) for row in rows] == [
        (10, "KRR", 3),
        (10, "EKL", 3),
        (20, "KRR", 3),
        (20, "EKL", 3),
    ]
    assert rows[1] == {"n": 10, "method": "EKL", "mean": 2.0, "std": 1.0, "count": 3, "paper": 0.5}
    assert rows[0]["paper"] is None


def test_other_files_are_refused(tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="results of format 1"):
        ExperimentResults.load(tmp_path / "other.json")


def test_values_that_are_not_plain_are_refused(tmp_path):
    with pytest.raises(TypeError, match="plain values, got set"):
        ExperimentResults("toy", "A toy", [{"n": {1}}]).save(tmp_path)
    assert list(tmp_path.iterdir()) == []
