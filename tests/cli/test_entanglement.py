import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge, OperatorValuedKernelRidge, OutputKernelRidge
from entangled_kernels.cli.entanglement import entanglement_of, measures_in_words, verdict_kind
from entangled_kernels.kernels import SeparableKernel
from entangled_kernels.storage import save_model

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


def test_large_kernels_are_not_tested(plant, run, monkeypatch):
    monkeypatch.setattr("entangled_kernels.cli.entanglement.LARGEST", 5)
    save_model(EntangledKernelRidge().fit(plant[NAMES], plant[TARGETS]), "m.model")
    assert "Not tested: features times targets are 6" in run("inspect", "m.model").stdout


def test_verdicts(plant):
    X, Y = plant[NAMES].to_numpy(), plant[TARGETS].to_numpy()
    found = entanglement_of(EntangledKernelRidge(shrinkage=0.1, alignment_mix=1.0).fit(X, Y))
    assert found["entangled"] is True
    assert found["entanglement"]["ppt"] is False
    separable = entanglement_of(OutputKernelRidge().fit(X, Y))
    assert separable["entangled"] is False
    assert list(separable) == list(found)
    given = OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(2))).fit(X, Y)
    assert entanglement_of(given)["entangled"] is None


def test_measures_in_words():
    measures = {"ppt": False, "lowest_eigenvalue": -0.0125, "negativity": -0.0}
    assert measures_in_words(measures) == {
        "PPT": "fails",
        "lowest eigenvalue": "-0.0125",
        "negativity": "0",
    }


@pytest.mark.parametrize(("entangled", "kind"), [(True, "entangled"), (False, "separable"), (None, "plain")])
def test_signs(entangled, kind):
    assert verdict_kind(entangled) == kind
