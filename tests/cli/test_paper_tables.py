"""Every figure of the paper is on the page, with ours, the difference and a verdict."""

import re

import numpy as np
import pytest

from entangled_kernels import experiments
from entangled_kernels.cli.pages import write_experiment_page
from entangled_kernels.cli.results import agreement_in_words, claims_of, claims_table
from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.agreement import CELLS
from entangled_kernels.io import ExperimentResults
from entangled_kernels.plotting.cells import format_cell


def made_up(name, n_splits=25):
    """Results drawn about the paper's own figures."""
    rng = np.random.default_rng(0)
    found = {}
    for cell in CELLS[name]:
        for method in cell.ours:
            for split in range(n_splits):
                nmse = abs(cell.nmse + cell.deviation * rng.normal())
                record = {
                    "method": method,
                    **cell.keys,
                    "split": split,
                    "nmse": nmse,
                    "fit_seconds": 0.1,
                }
                record |= {} if cell.ni is None else {"ni": cell.ni + 0.01 * rng.normal()}
                found[(method, *cell.keys.values(), split)] = record
    title = EXPERIMENTS[name].title
    return ExperimentResults(name, title, list(found.values()), meta={"protocol": "paper"})


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("page")
    runs = {"paper": {name: made_up(name) for name in CELLS}}
    undrawn = {name: one._replace(figures=lambda results: {}) for name, one in EXPERIMENTS.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "EXPERIMENTS", undrawn)
        write_experiment_page(runs, {}, "entangled-kernels reproduce all", out)
    return (out / "index.html").read_text()


def rows_of(page, caption):
    """Texts of the cells of every row of the table with this caption."""
    table = next(part for part in page.split("<table>") if f"</b> {caption}" in part).split(
        "</table>"
    )[0]
    rows = table.split("<tbody>")[1].split("<tr>")[1:]
    texts = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[re.sub("<[^>]*>", "", text) for text in row] for row in texts]


def test_every_figure_of_the_paper_is_on_the_page(page):
    counted = 0
    for name, cells in CELLS.items():
        title = EXPERIMENTS[name].title
        for cell in cells:
            where = ", over Kraus rank" if cell.table == "over rank" else ""
            figures = {"nMSE": (cell.nmse, cell.deviation)}
            if cell.ni is not None:
                figures["normalised improvement over kernel ridge (nI)"] = cell.ni
            for words, paper in figures.items():
                rows = rows_of(page, f"{title}{where}: {words}, the paper&#39;s and ours")
                for method in cell.ours:
                    own = [
                        row
                        for row in rows
                        if set(map(str, cell.keys.values())) <= set(row) and method in row
                    ]
                    assert len(own) == 1, (name, cell)
                    *_, printed, ours, difference, percentile, verdict = own[0]
                    assert printed == format_cell(paper, cell.digits)
                    assert ours
                    assert difference
                    assert percentile
                    words = ("agrees", "lower than ours", "higher than ours")
                    assert verdict in (words if method == cell.method else ("not judged",))
                counted += 1
    assert counted == 120


def test_agreement_in_words():
    words = agreement_in_words(made_up("concrete"))
    assert re.fullmatch(
        r"Means that agree with the paper's: \d+ of 12 with methods as published\.", words
    )
    fair = made_up("concrete")
    fair.meta["protocol"] = "fair"
    assert agreement_in_words(fair).endswith("of 12 with methods of the fair protocol.")
    assert agreement_in_words(made_up("concrete", 3)).startswith("Too few partitions")
    assert agreement_in_words(ExperimentResults("simulated", "", [])) == ""


def test_claims_for_people_and_machines():
    runs = {"paper": {"weather": made_up("weather")}, "fair": {}}
    table = claims_table(runs)
    assert table.columns[:2] == ["claim", "paper"]
    assert len(table.rows) == 4
    assert all(row[4:] == [None, None] for row in table.rows)
    assert claims_table({"paper": {}}) is None
    listed = claims_of(runs)
    assert [claim["claim"] for claim in listed] == [row[0] for row in table.rows]
    assert listed[0]["published"] == table.rows[0][1]
    assert set(listed[0]["runs"]) == {"paper"}
    assert set(listed[0]["runs"]["paper"]["effects"]) == {"EKL/ptrEKL", "EKL", "ptrEKL"}
