import json

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.cli.words import information_in_words
from entangled_kernels.io import save_model

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]
THEORY = ("entangle", "separable", "ppt", "negativity", "schmidt", "kraus", "partial trace")


def test_machines_are_told_the_same(model, run):
    values = json.loads(run("inspect plant.model --json").stdout)
    assert values["targets"] == TARGETS
    assert values["verdict"]
    assert values["entangled"] in (True, False, None)
    assert values["telling"] == information_in_words(np.array(values["information"]), TARGETS)
    np.testing.assert_allclose(values["information"], model.information_, atol=1e-6)
    reported = json.loads(run("inspect plant.model --json --report page.html").stdout)
    assert reported == values | {"report": "page.html"}


def test_an_entangled_model_is_called_so_only_when_asked(plant, run):
    model = EntangledKernelRidge(shrinkage=0.1, alignment_mix=1.0).fit(plant[NAMES], plant[TARGETS])
    save_model(model, "e.model")
    values = json.loads(run("inspect e.model --json").stdout)
    assert values["entangled"] is True
    assert values["verdict"].startswith("Entangled: PPT fails")
    negativity = model.kernel_.entanglement().negativity
    assert values["entanglement"]["negativity"] == pytest.approx(negativity)
    assert "fails" in run("inspect e.model --theory").stdout
    plain = run("inspect e.model").stdout
    plain = plain.replace("EntangledKernelRidge", "").replace("entangled-kernels", "").lower()
    assert [word for word in THEORY if word in plain] == []
