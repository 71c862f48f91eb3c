"""Cells and claims of the paper beside made-up results."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.agreement import (
    AGREES,
    BESIDE,
    CELLS,
    CLAIMS,
    FAILS,
    HIGHER,
    HOLDS,
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


def test_every_figure_of_the_paper_is_there():
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


def test_no_setting_is_there_twice_in_a_table():
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
                own = cell.nmse + cell.deviation * (shift + noise[split])
                record = {"method": method + variant, **cell.keys, "split": split, "nmse": own}
                records.append(record | ({} if cell.ni is None else {"ni": cell.ni}))
    return ExperimentResults(name, name, records)


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_judged_and_agrees_with_itself(name):
    found = judge_cells(made_up(name), np.random.default_rng(0))
    for metric in ("nmse", "ni"):
        own = {
            (one.cell.table, one.cell.method, *one.cell.keys.values())
            for one in found
            if one.metric == metric
        }
        cells = [cell for cell in CELLS[name] if metric == "nmse" or cell.ni is not None]
        assert own == {(cell.table, cell.method, *cell.keys.values()) for cell in cells}
    shared = name in ("sarcos", "weather")
    assert {one.verdict.word for one in found if one.method == one.cell.method} == {AGREES}
    assert {one.method for one in found if one.verdict.word == BESIDE} == (
        {"EKL", "ptrEKL"} if shared else set()
    )
    compared = [one for one in found if one.metric == "difference"]
    assert {one.method for one in compared} == {"OKL", "EKL", "ptrEKL"} | (
        {SHARED} if shared else set()
    )


def test_what_is_off_is_called_so():
    found = judge_cells(made_up("weather", shift=-3.0), np.random.default_rng(0))
    assert {one.verdict.word for one in found if one.metric == "nmse"} == {HIGHER, BESIDE}


def test_differences_are_paired_and_those_with_lambda_one_to_kernel_ridge_with_it():
    results = made_up("uwave", variant=", lambda 1")
    found = judge_cells(results, np.random.default_rng(0))
    assert all(one.method.endswith(", lambda 1") for one in found)
    one = next(
        one for one in found if one.metric == "difference" and one.cell.keys["rank"] == "20%"
    )
    own = values_by_split(results, one.method, one.cell.keys)
    plain = values_by_split(results, "KRR, lambda 1", one.cell.keys | {"rank": "100%"})
    assert one.verdict.ours == pytest.approx(np.mean([own[split] - plain[split] for split in own]))
    assert one.paper == pytest.approx(one.cell.nmse - 2.853)


def test_few_partitions_and_other_experiments():
    found = judge_cells(made_up("concrete", n_splits=3), np.random.default_rng(0))
    assert {one.verdict.word for one in found} == {TOO_FEW}
    assert judge_cells(ExperimentResults("simulated", "", []), np.random.default_rng(0)) == []
    assert improvement(0.722, 0.813) == pytest.approx(0.119, abs=1e-3)


def results(difference, spread=0.01, n_splits=30):
    rng = np.random.default_rng(0)
    records = []
    for split in range(n_splits):
        plain = 1.0 + 0.2 * rng.normal()
        own = plain + difference + spread * rng.normal()
        records += [
            {"method": method, "n": 10, "split": split, "nmse": error}
            for method, error in (("KRR", plain), ("EKL", own), ("ptrEKL", 2 * plain - own))
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


def test_what_the_interval_does_not_tell_stays_open():
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
