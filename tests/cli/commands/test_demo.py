import json

import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EvidenceFeatures
from entangled_kernels.cli.commands import paper as module
from entangled_kernels.experiments import methods, partly_measured
from entangled_kernels.io import ExperimentResults


@pytest.fixture
def _brief(monkeypatch, small):
    """Few trees, a small search, one draw less than two, and some rows to test on."""
    tables = module.demo_tables()
    some = {name: (title, X[:90], Y.iloc[:90, :4]) for name, (title, X, Y) in tables.items()}
    monkeypatch.setattr(module, "demo_tables", lambda: some)
    monkeypatch.setattr(module, "REPEATS", 2)
    monkeypatch.setattr(
        methods, "ExtraTreesRegressor", lambda _, **more: ExtraTreesRegressor(5, **more)
    )
    estimator, maps = partly_measured.EntangledKernelRidgeCV, [StandardScaler(), EvidenceFeatures()]
    monkeypatch.setattr(
        partly_measured, "EntangledKernelRidgeCV", lambda **more: estimator(maps, **small, **more)
    )


@pytest.mark.usefixtures("_brief")
@pytest.mark.filterwarnings("ignore:the smallest of the alphas")
def test_demo(run, folder, monkeypatch):
    shown = run("demo --jobs 1").stdout
    assert "Breast cancer: ten worst values: nMSE" in shown
    assert "of the 90% intervals" in shown
    page = (folder / "demo-report" / "index.html").read_text()
    assert page.count("<img") == 4
    for words in (
        "Wine: what targets tell about each other",
        "How to repeat it",
        "entangled-kernels demo",
    ):
        assert words in page
    assert "demo-report is not empty" in run("demo", code=2).stderr
    # The same again for machines, without the work.
    done = {
        name: ExperimentResults.load(f"demo-report/{name}.json")
        for name in ("breast-cancer", "wine")
    }
    monkeypatch.setattr(module, "run_demo", lambda screen, name, *_: done[name])
    values = json.loads(run("demo", "--force", "--json").stdout)
    assert list(values["summary"]) == ["breast-cancer", "wine"]
    nmse = values["summary"]["wine"]["nmse"]
    assert [entry["known"] for entry in nmse if entry["method"] == "ridge"] == [0, 1, 2, 3]
    shares = [entry["mean"] for entry in values["summary"]["wine"]["coverage"]]
    assert all(0.0 < share <= 1.0 for share in shares)
