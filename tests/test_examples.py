"""Examples run, and the numbers they end in hold.

`make docs` runs all of them. Here those run that take a second or two, two more on less data, and
the others are compiled.
"""

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem.removeprefix("plot_") for path in EXAMPLES.glob("plot_*.py"))


@pytest.fixture(autouse=True)
def no_windows():
    """Draw in memory, and leave nothing open."""
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    plt.close("all")
    mpl.use(before)


def parts(name):
    """What an example defines, without what it does when it is run."""
    return runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))


def run(name):
    """What is left of an example that was run, which has drawn a figure."""
    left = runpy.run_path(str(EXAMPLES / f"plot_{name}.py"), run_name="__main__")
    assert plt.get_fignums()
    return left


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_in_the_form_of_the_gallery(name):
    text = (EXAMPLES / f"plot_{name}.py").read_text(encoding="utf-8")
    compile(text, name, "exec")
    title, rule, blank = re.match(r'"""\n(.*)\n(=+)\n(.*)\n', text).groups()
    assert len(title) == len(rule)
    assert not blank
    assert text.count("# %%") >= 2
    assert text.rstrip().endswith("plt.show()")
    assert len(text.splitlines()) <= 130


def test_the_gallery_has_an_order(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import gallery_look

    assert sorted(gallery_look.ORDER) == [f"plot_{name}.py" for name in NAMES]


def test_digits():
    rows = {name: scores for name, *scores in parts("digits")["compare"](n_train=20, n_splits=3)}
    assert list(rows) == ["kernel ridge", "entangled", "partial trace"]
    for alignment, accuracy, nmse in rows.values():
        assert accuracy > 0.85
        assert nmse < 0.35
        assert 0 < alignment < 1
    assert rows["entangled"][0] > rows["kernel ridge"][0] + 0.3


def test_partly_measured():
    results, model, order = parts("partly_measured")["compare"](n_train=40, n_splits=1)
    ours, ridge, inside, width = results.T
    assert sorted(order) == sorted(model.target_names_)
    assert ours[-1] < 0.7 * ours[0]
    assert width[-1] < 0.9 * width[0]
    assert ours[-1] < ridge[-1]
    assert inside.min() > 0.85
    assert inside.max() < 0.99


def test_paper_in_forty_lines():
    left = run("paper_in_forty_lines")
    assert max(left["differences"].values()) < 1e-8
    assert left["history"][-1] > left["history"][0] + 0.3
    assert left["history"][-1] < left["model"].largest_alignment_


def test_causal_network():
    scores = run("causal_network")["scores"]
    assert min(score for (plant, name), score in scores.items() if name != "linear") > 0.95
    assert scores["rising", "linear"] > 0.95
    assert scores["rising and falling", "linear"] < 0.95


def test_feature_groups():
    left = run("feature_groups")
    gains = left["scores"]["banded"] - left["scores"]["ridge"]
    assert gains[:4].min() > 0
    assert gains[4] < 0.02
    # Targets that hang on one group alone have their variance explained by it.
    assert left["parts"][:, [0, 2]].argmax(axis=0).tolist() == [0, 1]


def test_streams():
    left = run("streams")
    for name in ("batches", "cluster"):
        assert np.abs(left[name].coef_ - left["whole"].coef_).max() < 1e-9 * left["largest"]
    means = {forget: values.mean() for forget, values in left["errors"].items()}
    assert means[0.95] < means[0.99] < means[1.0]


def test_entangled_or_not():
    left = run("entangled_or_not")
    means = {key: np.mean(values) for key, values in left["errors"].items()}
    for truth in ("separable", "sum of two"):
        assert means[truth, "entangled"] < 0.9 * means[truth, "kernel ridge"]
        assert means[truth, "separable, learned"] < 0.9 * means[truth, "kernel ridge"]
    # Each model is best on its own truth, and near the best on the other's.
    assert means["sum of two", "entangled"] < means["sum of two", "separable, learned"]
    assert means["separable", "entangled"] < 1.05 * means["separable", "separable, learned"]
    assert means["entangled", "kernel ridge"] < means["entangled", "entangled"]
    assert left["learned"].kernel_.entanglement().entangled


def test_text_columns():
    errors = run("text_columns")["errors"]
    assert errors["without text"]["days"] > 0.8
    assert errors["with text"]["days"] < 0.4
    assert errors["with text, calls known"]["days"] < 0.8 * errors["with text"]["days"]


def test_curves():
    left = run("curves")
    assert left["tells"].shape == (60,)
    assert 0.84 < left["inside"] < 0.95
    assert 0.84 < left["inside_after"] < 0.95
    assert left["share"] < 0.4
    assert len(left["figure"].axes) == 4
