import json
import os

import numpy as np
import pytest

from entangled_kernels import experiments
from entangled_kernels.cli.commands import paper as reproduce
from entangled_kernels.experiments import EXPERIMENTS, Experiment
from entangled_kernels.io import ExperimentResults
from entangled_kernels.plotting.cells import PageTable


def small_run(setup):
    """Two methods, two sizes, three partitions, at once."""
    rng = np.random.default_rng(setup.seed)
    records = []
    for done, n in enumerate((10, 20)):
        setup.progress(done, 2, f"n={n}")
        for split in range(3):
            for method, base, ni in (("KRR", 0.5, 0.0), ("EKL", 0.4, 0.2)):
                record = {"method": method, "n": n, "split": split, "fit_seconds": 0.01 * n}
                records.append(record | {"nmse": base / n + 0.001 * rng.random(), "ni": ni})
    paper = [{"method": "EKL", "n": 10, "nmse": 0.0411}]
    meta = setup.meta(methods={"KRR": "kernel ridge", "EKL": "entangled"})
    return ExperimentResults("small", "A small experiment", records, paper, meta)


def small_figures(results):
    from entangled_kernels.plotting import ComparisonDisplay

    return {"small-nmse": ComparisonDisplay.from_results(results).figure_}


def small_tables(results):
    return [PageTable(["size", "power"], [["large", 2.0]], "Powers of growth", digits=1)]


def missing_run(setup):
    raise FileNotFoundError(f"put it.csv into {setup.data_home}")


@pytest.fixture
def small(monkeypatch):
    """Two experiments in place of the real ones: a quick one, and one without its data."""
    made = {
        "small": Experiment(
            "small", "A small experiment", "About it.", small_run, small_figures, small_tables
        ),
        "absent": Experiment("absent", "Absent", "About it.", missing_run, small_figures),
    }
    monkeypatch.setattr(experiments, "EXPERIMENTS", made)
    monkeypatch.setattr("entangled_kernels.cli.commands.paper.NAMES", (*made, "all"))


def test_all_experiments_can_be_named():
    assert set(reproduce.NAMES) == {*EXPERIMENTS, "all"}


def test_results_figures_and_page(small, run, folder):
    shown = run("reproduce small --out out").stdout
    for words in ("A small experiment: nMSE", "EKL (paper)", "0.0411"):
        assert words in shown
    assert sorted(os.listdir("out")) == ["index.html", "small-nmse.svg", "small.csv", "small.json"]
    page = (folder / "out" / "index.html").read_text()
    for words in (
        "<title>A small experiment</title>",
        "About it.",
        "EKL (paper)",
        "0.0411",
        "are the published numbers",
        "open marks are the paper&#39;s",
        "Powers of growth",
        "Against kernel ridge",
    ):
        assert words in page
    assert "Left out" not in page
    assert "entangled-kernels reproduce small --out out" in page


def test_missing_data(small, run):
    result = run("reproduce absent --out out --data-home here", code=6)
    assert "error: the data of absent are missing: put it.csv into here" in result.stderr
    assert not os.path.exists("out")


def test_all_leaves_out_what_is_missing(small, run, folder):
    result = run("reproduce all --out out --json", code=None)
    assert result.exit_code == 6
    assert "note: absent is left out" in result.stderr
    values = json.loads(result.stdout)
    assert list(values["experiments"]) == ["small"]
    first = values["experiments"]["small"]["nmse"][1]
    assert (first["method"], first["n"], first["count"], first["paper"]) == ("EKL", 10, 3, 0.0411)
    assert list(values["missing"]) == ["absent"]
    assert "Left out" in (folder / "out" / "index.html").read_text()


def test_digits_end_to_end(run, folder):
    run("reproduce digits --quick --out out")
    page = (folder / "out" / "index.html").read_text()
    assert "Entangled:" in page
    assert page.count("<img") == 4


def test_both_protocols_on_one_page(small, run, folder):
    run("reproduce all --out out --protocol both --json", code=None)
    assert sorted(os.listdir("out")) == ["fair", "index.html", "paper"]
    assert sorted(os.listdir("out/fair")) == ["small-nmse.svg", "small.csv", "small.json"]
    page = (folder / "out" / "index.html").read_text()
    assert "Results, protocol paper" in page
    assert "Results, protocol fair" in page


def test_resuming_keeps_results_of_the_same_settings(small, run, monkeypatch):
    run("reproduce small --out out")
    calls = []
    again = experiments.EXPERIMENTS["small"]

    def counted(setup):
        calls.append(setup.seed)
        return small_run(setup)

    monkeypatch.setitem(experiments.EXPERIMENTS, "small", again._replace(run=counted))
    run("reproduce small --out out --resume")
    assert calls == []
    run("reproduce small --out out --resume --seed 1")
    assert calls == [1]
    run("reproduce small --out out --resume --seed 1 --protocol paper")
    assert calls == [1, 1]


def test_interruption_keeps_what_is_done(small, run, monkeypatch):
    def interrupt(setup):
        raise KeyboardInterrupt

    absent = experiments.EXPERIMENTS["absent"]
    stopped = Experiment("absent", absent.title, absent.about, interrupt, absent.figures)
    monkeypatch.setitem(experiments.EXPERIMENTS, "absent", stopped)
    run("reproduce all --out out", code=130)
    assert sorted(os.listdir("out")) == ["index.html", "small-nmse.svg", "small.csv", "small.json"]
