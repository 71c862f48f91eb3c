"""Cells of the paper beside made-up results: what is set beside what, and that all cells are judged."""

import numpy as np
import pytest

from entangled_kernels.experiments.agreement import (
    AGREES,
    BESIDE,
    CELLS,
    HIGHER,
    SHARED,
    TOO_FEW,
    judge_cells,
    values_by_split,
)
from entangled_kernels.experiments.protocol import improvement
from entangled_kernels.storage import ExperimentResults


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
    assert {one.method for one in compared} == {"OKL", "EKL", "ptrEKL"} | ({SHARED} if shared else set())


def test_what_is_off_is_called_so():
    found = judge_cells(made_up("weather", shift=-3.0), np.random.default_rng(0))
    assert {one.verdict.word for one in found if one.metric == "nmse"} == {HIGHER, BESIDE}


def test_differences_are_paired_and_those_with_lambda_one_to_kernel_ridge_with_it():
    results = made_up("uwave", variant=", lambda 1")
    found = judge_cells(results, np.random.default_rng(0))
    assert all(one.method.endswith(", lambda 1") for one in found)
    one = next(one for one in found if one.metric == "difference" and one.cell.keys["rank"] == "20%")
    own = values_by_split(results, one.method, one.cell.keys)
    plain = values_by_split(results, "KRR, lambda 1", one.cell.keys | {"rank": "100%"})
    assert one.verdict.ours == pytest.approx(np.mean([own[split] - plain[split] for split in own]))
    assert one.paper == pytest.approx(one.cell.nmse - 2.853)


def test_few_partitions_and_other_experiments():
    found = judge_cells(made_up("concrete", n_splits=3), np.random.default_rng(0))
    assert {one.verdict.word for one in found} == {TOO_FEW}
    assert judge_cells(ExperimentResults("simulated", "", []), np.random.default_rng(0)) == []
    assert improvement(0.722, 0.813) == pytest.approx(0.119, abs=1e-3)
