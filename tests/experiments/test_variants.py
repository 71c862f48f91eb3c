"""Variants of the objective against dense Gram matrices, and the table that comes of them."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.variants import (
    ALL,
    CHOSEN_GAMMA,
    PLACES,
    RULES,
    Variant,
    learned_kernels,
    variant_problem,
)
from entangled_kernels.learning import LearnedKernel


def dense_objective(variant, X, Y, Q):
    """Both alignments from Gram matrices; Q (m, p, r) in the coordinates of the rows."""
    (n, m), p = X.shape, Y.shape[1]
    Z = (X @ Q.reshape(m, -1)).reshape(n * p, -1)
    G, y = Z @ Z.T, Y.reshape(-1)
    traced = np.einsum("iojo->ij", G.reshape(n, p, n, p))
    H, Hy = np.eye(n), np.eye(n * p)
    if variant.centring:
        H, Hy = H - 1.0 / n, Hy - 1.0 / (n * p)
    K, YY, Gc, yc = H @ traced @ H, H @ Y @ Y.T @ H, Hy @ G @ Hy, Hy @ y
    first = np.vdot(K, YY) / np.linalg.norm(K)
    second = yc @ Gc @ yc / np.linalg.norm(Gc)
    if variant.target_norms:
        first, second = first / np.linalg.norm(YY), second / (yc @ yc)
    return (1.0 - variant.mix) * first + variant.mix * second


@pytest.mark.parametrize("centring", [True, False])
@pytest.mark.parametrize("target_norms", [True, False])
def test_objectives_are_those_of_gram_matrices(make_rows, target_norms, centring):
    """Without target norms up to one factor, which an ascent does not see."""
    X, Y = make_rows(12, 4, 3)
    X, Y = X + 0.5, Y + 1.0
    variant = Variant(mix=0.3, target_norms=target_norms, centring=centring)
    problem = variant_problem(variant, X, Y)
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(3):
        Q = rng.standard_normal((*problem.targets.shape, 5))
        own = problem.whitened.evaluate(problem.whiten(Q)).value
        kraus = problem.expand_kraus(Q)  # (r, p, m)
        ratios.append(own / dense_objective(variant, X, Y, kraus.transpose(2, 1, 0)))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-8)
    if target_norms:
        assert ratios[0] == pytest.approx(1.0)


def test_kernels_of_a_path(make_rows):
    X, Y = make_rows(12, 4, 3)
    variant = Variant(steps=(0, 2, 5))
    problem = variant_problem(variant, X, Y)
    kernels = learned_kernels(variant, problem, 0)
    assert list(kernels) == [0, 2, 5]
    values = [problem.whitened.evaluate(problem.whiten(kernel.Q)).value for kernel in kernels.values()]
    assert values == sorted(values)
    scaled = learned_kernels(Variant(steps=(0,), our_units=True), problem, 0)[0]
    trace = problem.n_outputs * problem.scale.sum()
    assert scaled.gram_trace(problem.scale, problem.n_outputs) == pytest.approx(trace)
    assert isinstance(scaled, LearnedKernel)


def test_runs_and_is_kept(run_and_draw):
    results, figures = run_and_draw("variants", "paper")
    assert figures == []
    tables = EXPERIMENTS["variants"].tables(results)
    assert [table.caption.split(":")[0] for table in tables] == list(PLACES)
    assert all(len(row) == 7 for table in tables for row in table.rows)
    assert {record["method"] for record in results.records} == {
        f"{method}, {rule}" for method in ("EKL", "ptrEKL") for rule in RULES
    }
    steps = {name: {min(step, 5) for step in variant.steps} for name, variant in ALL.items()}
    expected = {name.format(step) for name, own in steps.items() for step in own}
    assert {record["variant"] for record in results.records} == expected | {CHOSEN_GAMMA.format(5)}
    by_rule = {}
    for record in results.records:
        method, rule = record["method"].split(", ", 1)
        key = (record["task"], record["variant"], method, record["split"])
        by_rule.setdefault(key, {})[rule] = record["nmse"]
    assert all(errors[RULES[2]] <= min(errors.values()) + 1e-12 for errors in by_rule.values())
