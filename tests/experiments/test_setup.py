"""What an experiment is, and how one is asked to run."""

import numpy as np

from entangled_kernels.experiments import EXPERIMENTS, PROTOCOLS, Setup


def test_experiments_have_names_and_descriptions():
    assert list(EXPERIMENTS) == [
        "sarcos",
        "weather",
        "concrete",
        "uwave",
        "simulated",
        "digits",
        "running-times",
        "kernels",
    ]
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.about.endswith(".")


def test_meta_is_what_repeats_the_run():
    meta = Setup("paper", quick=True, seed=7, n_jobs=2).meta(repeats=3)
    assert {key: meta[key] for key in ("protocol", "quick", "seed", "repeats")} == {
        "protocol": "paper",
        "quick": True,
        "seed": 7,
        "repeats": 3,
    }
    assert meta["versions"]["numpy"] == np.__version__
    assert "joblib" in meta["versions"]
    assert "n_jobs" not in meta
    assert set(PROTOCOLS) == {"paper", "fair"}
