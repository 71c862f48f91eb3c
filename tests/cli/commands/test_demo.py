import json

import pytest

from entangled_kernels.storage import ExperimentResults


@pytest.fixture
def _brief(monkeypatch):
    monkeypatch.setattr("entangled_kernels.cli.commands.demo.TRAIN_SIZES", (12,))
    monkeypatch.setattr("entangled_kernels.cli.commands.demo.REPEATS", 2)
    monkeypatch.setattr("entangled_kernels.cli.commands.demo.METHODS", ("KRR", "ptrEKL"))


@pytest.mark.usefixtures("_brief")
def test_demo(run, folder, monkeypatch):
    shown = run("demo").stdout
    assert "nMSE" in shown
    assert "Entangled: PPT fails" in shown
    page = (folder / "demo-report" / "index.html").read_text()
    assert page.count("<img") == 4
    for words in ("Methods side by side", "How to repeat it", "entangled-kernels demo"):
        assert words in page
    assert "demo-report is not empty" in run("demo", code=2).stderr
    # The same again for machines, without the work.
    done = {name: ExperimentResults.load(f"demo-report/{name}.json") for name in ("digits", "digits-methods")}
    monkeypatch.setattr(
        "entangled_kernels.cli.commands.demo.compare_on_digits", lambda *_: done["digits-methods"]
    )
    monkeypatch.setattr("entangled_kernels.cli.commands.demo.run_experiment", lambda *_: done["digits"])
    values = json.loads(run("demo", "--force", "--json").stdout)
    assert values["entangled"] is True
    assert [entry["n"] for entry in values["summary"]["nmse"]] == [12, 12]
