import numpy as np

from entangled_kernels import experiments
from entangled_kernels.cli.experiment_runs import run_experiment
from entangled_kernels.cli.screen import Screen
from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.storage import ExperimentResults


def test_what_is_given_is_what_was_saved(folder, monkeypatch):
    seen = []

    class Fake:
        @staticmethod
        def run(setup):
            setup.progress(1, 2, "n=10")
            seen.append(setup)
            return ExperimentResults("fake", "Fake", [{"method": "KRR", "n": 10, "nmse": np.float64(0.5)}])

    monkeypatch.setattr(experiments, "EXPERIMENTS", EXPERIMENTS | {"fake": Fake})
    results = run_experiment(Screen(), "fake", folder / "out", {"seed": 3, "quick": True})
    assert (seen[0].seed, seen[0].quick) == (3, True)
    assert results.records == ExperimentResults.load(folder / "out" / "fake.json").records
    assert results.records[0]["nmse"] == 0.5
