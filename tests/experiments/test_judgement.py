"""Verdicts on cells and claims of the paper, from made-up results."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.agreement import (
    AGREES,
    CELLS,
    CLAIMS,
    FAILS,
    HIGHER,
    HOLDS,
    NOT_JUDGED,
    OPEN,
    SHARED,
    TOO_FEW,
    Claim,
    judge_cells,
    judge_claim,
    values_by_split,
)
from entangled_kernels.experiments.protocol import improvement
from entangled_kernels.io import ExperimentResults


def test_every_number_of_the_paper_is_there():
    means = {"sarcos": 12, "weather": 9, "concrete": 12, "uwave": 54}
    assert {name: len(cells) for name, cells in CELLS.items()} == means
    # Means and improvements.
    assert {
        name: sum(1 + (cell.ni is not None) for cell in cells) for name, cells in CELLS.items()
    } == means | {
        "sarcos": 24,
        "weather": 18,
        "concrete": 24,
    }
    assert {name: {cell.partitions for cell in cells} for name, cells in CELLS.items()} == {
        "sarcos": {10},
        "weather": {5},
        "concrete": {10},
        "uwave": {3},
    }


def test_every_setting_is_once_in_a_table():
    for cells in CELLS.values():
        keys = [(cell.table, cell.method, *cell.keys.values()) for cell in cells]
        assert len(set(keys)) == len(keys)


def test_the_table_of_ranks_repeats_the_column_of_thirty_rows():
    over_n = {(c.method, *c.keys.values()): c for c in CELLS["uwave"] if c.table == "over n"}
    repeated = [c for c in CELLS["uwave"] if c.table == "over rank" and c.keys["rank"] == "100%"]
    assert len(repeated) == 6
    for cell in repeated:
        other = over_n[(cell.method, *cell.keys.values())]
        assert (cell.nmse, cell.deviation) == (other.nmse, other.deviation)


def made_up(name, n_splits=60, shift=0.0, variant=""):
    """Results whose partitions are drawn about the paper's means, moved by some deviations."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=n_splits)
    records = []
    for cell in CELLS[name]:
        for method in cell.ours:
            for split in range(n_splits):
                error = cell.nmse + cell.deviation * (shift + noise[split])
                record = {"method": method + variant, **cell.keys, "split": split, "nmse": error}
                records.append(record | ({} if cell.ni is None else {"ni": cell.ni}))
    return ExperimentResults(name, name, records)


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_judged_and_agrees_with_itself(name):
    verdicts = judge_cells(made_up(name), np.random.default_rng(0))
    for metric in ("nmse", "ni"):
        judged = [verdict.cell for verdict in verdicts if verdict.metric == metric]
        cells = [cell for cell in CELLS[name] if metric == "nmse" or cell.ni is not None]
        assert all(cell in judged for cell in cells)
        assert all(cell in cells for cell in judged)
    shared = name in ("sarcos", "weather")
    assert {v.verdict.word for v in verdicts if v.method == v.cell.method} == {AGREES}
    assert {v.method for v in verdicts if v.verdict.word == NOT_JUDGED} == (
        {"EKL", "ptrEKL"} if shared else set()
    )
    assert {v.method for v in verdicts if v.metric == "difference"} == {"OKL", "EKL", "ptrEKL"} | (
        {SHARED} if shared else set()
    )


def test_numbers_that_differ_do_not_agree():
    verdicts = judge_cells(made_up("weather", shift=-3.0), np.random.default_rng(0))
    assert {v.verdict.word for v in verdicts if v.metric == "nmse"} == {HIGHER, NOT_JUDGED}


def test_differences_are_paired_and_those_with_lambda_one_to_kernel_ridge_with_it():
    results = made_up("uwave", variant=", lambda 1")
    verdicts = judge_cells(results, np.random.default_rng(0))
    assert all(verdict.method.endswith(", lambda 1") for verdict in verdicts)
    first = next(v for v in verdicts if v.metric == "difference" and v.cell.keys["rank"] == "20%")
    ours = values_by_split(results, first.method, first.cell.keys)
    plain = values_by_split(results, "KRR, lambda 1", first.cell.keys | {"rank": "100%"})
    differences = [ours[split] - plain[split] for split in ours]
    assert first.verdict.ours == pytest.approx(np.mean(differences))
    assert first.paper == pytest.approx(first.cell.nmse - 2.853)


def test_few_partitions_and_other_experiments():
    verdicts = judge_cells(made_up("concrete", n_splits=3), np.random.default_rng(0))
    assert {verdict.verdict.word for verdict in verdicts} == {TOO_FEW}
    assert judge_cells(ExperimentResults("simulated", "", []), np.random.default_rng(0)) == []
    assert improvement(0.722, 0.813) == pytest.approx(0.119, abs=1e-3)


def results(difference, spread=0.01, n_splits=30):
    rng = np.random.default_rng(0)
    records = []
    for split in range(n_splits):
        plain = 1.0 + 0.2 * rng.normal()
        ours = plain + difference + spread * rng.normal()
        records += [
            {"method": method, "n": 10, "split": split, "nmse": error}
            for method, error in (("KRR", plain), ("EKL", ours), ("ptrEKL", 2 * plain - ours))
        ]
    return ExperimentResults("weather", "Weather", records)


@pytest.mark.parametrize(
    ("sign", "difference", "word"),
    [(-1, -0.1, HOLDS), (-1, 0.1, FAILS), (1, 0.1, HOLDS), (0, 0.0, HOLDS), (0, 0.1, FAILS)],
)
def test_clear_differences(sign, difference, word):
    claim = Claim("", "weather", sign, ("EKL",), keys={"n": 10})
    finding = judge_claim(claim, results(difference))
    assert finding.verdict == word
    assert finding.effects["EKL"].mean == pytest.approx(100 * difference, abs=1.0)


def test_a_wide_interval_leaves_a_claim_undecided():
    for sign in (-1, 0, 1):
        claim = Claim("", "weather", sign, ("EKL",), keys={"n": 10})
        assert judge_claim(claim, results(0.0, spread=1.0)).verdict == OPEN


def test_methods_that_differ_have_a_word_each():
    claim = Claim("", "weather", -1, ("EKL", "ptrEKL"), keys={"n": 10})
    assert judge_claim(claim, results(-0.1)).verdict == "EKL holds, ptrEKL fails"
    assert judge_claim(claim, None) is None
    assert judge_claim(claim, ExperimentResults("weather", "", [])) is None


def test_the_papers_differences_come_from_its_tables():
    published = {claim.text: claim.published() for claim in CLAIMS}
    assert published["weather, n = 10: EKL below KRR"] == pytest.approx(
        100 * (0.722 - 0.813) / 0.813
    )
    assert published["uWave class 1, n = 20, lambda 1 for both: EKL below KRR"] == pytest.approx(
        -62.28, abs=0.01
    )
    ranks = "uWave class 2, n = 30: EKL with 20% of the operators as good as with all"
    assert published[ranks] == pytest.approx(100 * (0.941 - 0.943) / 0.943)
    assert all(published[claim.text] is None for claim in CLAIMS if claim.experiment == "simulated")


def test_the_summary_is_short_and_every_claim_has_an_experiment():
    assert len([claim for claim in CLAIMS if claim.summary]) <= 15
    assert {claim.experiment for claim in CLAIMS} <= set(EXPERIMENTS)
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)
