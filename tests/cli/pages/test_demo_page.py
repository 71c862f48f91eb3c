from matplotlib.figure import Figure

from entangled_kernels import experiments
from entangled_kernels.cli.pages.demo_page import write_demo_page
from entangled_kernels.storage import ExperimentResults


class Fake:
    """What a page asks of an experiment."""

    title, about = "Digits", "About digits."

    @staticmethod
    def figures(results):
        return {"digits-kernel": Figure()}


def test_what_the_page_says(folder, monkeypatch):
    monkeypatch.setattr(experiments, "EXPERIMENTS", {"digits": Fake})
    records = [
        {"method": method, "n": n, "split": 0, "nmse": nmse}
        for method, nmse in (("KRR", 0.5), ("EKL", 0.4))
        for n in (10, 20)
    ]
    meta = {"methods": {"KRR": "kernel ridge"}, "versions": {"numpy": "2"}}
    compared = ExperimentResults("digits-methods", "Four tasks", records, meta=meta)
    meta = {"verdict": "Entangled: PPT fails", "entangled": True}
    learned = ExperimentResults(
        "digits", "The kernel", [{"task": "0", "accuracy": 0.9, "method": "EKL"}], meta=meta
    )
    path = write_demo_page(compared, learned, "entangled-kernels demo", folder / "demo")
    page = path.read_text()
    assert path == folder / "demo" / "index.html"
    for words in (
        "KRR: kernel ridge",
        "EKL has 20.0% less error",
        "About digits.",
        "PPT fails",
        "How to repeat it",
    ):
        assert words in page
    assert page.count("<img") == 2
    assert (folder / "demo" / "digits-kernel.svg").exists()
