import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from entangled_kernels.output_kernel import (
    PENALTIES,
    MeasuredProblem,
    OutputPenalty,
    alpha_unit,
    fixed_output_kernel,
    learn_output_kernel,
    output_kernel_path,
    reduce_cells,
    reduce_problem,
)

from .problems import make_problem

CASES = [(name, constraint) for name in PENALTIES for constraint in (False, True)]


def make_cells(rng, n=20, p=3, weighted=False):
    K, Y = make_problem(rng, n, p)
    weights = (rng.random((n, p)) < 0.65).astype(float)
    weights[weights.max(axis=1) == 0.0] = 1.0
    if weighted:
        weights *= rng.uniform(0.5, 2.0, size=(n, p))
    return K, Y, weights


def dense_value(K, Y, weights, L, alpha, centred):
    """y^T (G + alpha W^-1)^-1 y / 2 on measured cells, intercepts taken at their best; the coefficients."""
    rows, outputs = np.nonzero(weights)
    y = Y[rows, outputs]
    G = K[np.ix_(rows, rows)] * L[np.ix_(outputs, outputs)] + np.diag(alpha / weights[rows, outputs])
    factor = cho_factor(G)
    if centred:
        ones = np.eye(Y.shape[1])[outputs]  # (N, p)
        y = y - ones @ np.linalg.solve(ones.T @ cho_solve(factor, ones), ones.T @ cho_solve(factor, y))
    c = cho_solve(factor, y)
    C = np.zeros_like(Y)
    C[rows, outputs] = c
    return 0.5 * y @ c, C


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("name", "constraint"), CASES)
def test_value_coefficients_and_gap_are_those_of_the_dense_definition(rng, name, constraint, centred):
    K, Y, weights = make_cells(rng, weighted=centred)
    penalty = OutputPenalty(name, constraint)
    problem = reduce_cells(K, Y, weights, centred=centred)
    alpha = 0.3 * alpha_unit(problem.complete, penalty=penalty)
    found = learn_output_kernel(problem, alpha, penalty=penalty, tol=1e-4)
    value, C = dense_value(K, Y, weights, found.L, alpha, centred)
    p = len(found.L)
    if not penalty.is_ball:
        value += penalty.build(p, p).value(found.L[None])
    # For the L that was found the model is the best to within the gap.
    assert value <= found.value * (1 + 1e-12)
    assert found.value <= value + found.gap + 1e-12 * value
    np.testing.assert_allclose(found.C, C, atol=2e-3 * np.abs(C).max())
    assert found.converged
    assert found.gap <= 1e-8 * found.value
    assert (np.diff(found.history) <= 0).all()


@pytest.mark.parametrize("name", ["frobenius", "trace", "entrywise"])
def test_no_other_output_kernel_is_better(rng, name):
    K, Y, weights = make_cells(rng)
    penalty = OutputPenalty(name)
    problem = reduce_cells(K, Y, weights, centred=True)
    alpha = 0.1 * alpha_unit(problem.complete, penalty=penalty)
    found = learn_output_kernel(problem, alpha, penalty=penalty)
    built = penalty.build(3, 3)
    for size in (0.0, 1e-3, 1e-2, 0.1, 1.0):
        B = np.linalg.cholesky(found.L + 1e-9 * np.eye(3)) + size * rng.normal(size=(3, 3))
        L = B @ B.T
        value = dense_value(K, Y, weights, L, alpha, True)[0] + built.value(L[None])
        assert value >= found.value - found.gap


@pytest.mark.parametrize("rank", [1, 2])
def test_a_rank_is_kept_and_its_gap_holds_over_all_ranks(rng, rank):
    K, Y, weights = make_cells(rng)
    problem = reduce_cells(K, Y, weights, centred=True)
    alpha = 0.3 * alpha_unit(problem.complete, rank=rank)
    found = learn_output_kernel(problem, alpha, rank=rank)
    free = learn_output_kernel(problem, alpha, penalty=OutputPenalty("trace"))
    assert np.linalg.matrix_rank(found.L, tol=1e-9) <= rank
    assert found.converged
    assert found.value - found.gap <= free.value
    assert free.value - free.gap <= found.value
    assert (np.diff(found.history) <= 0).all()


def test_a_given_output_kernel(rng):
    K, Y, weights = make_cells(rng, weighted=True)
    L = np.cov(rng.normal(size=(3, 9)))
    found = fixed_output_kernel(reduce_cells(K, Y, weights, centred=True), 0.2, L, tol=1e-7)
    value, C = dense_value(K, Y, weights, L, 0.2, True)
    np.testing.assert_allclose(found.C, C, atol=1e-6 * np.abs(C).max())
    assert found.value == pytest.approx(value, rel=1e-10)
    assert found.reason == "fixed"


def test_complete_targets_stay_a_plain_problem(rng):
    K, Y = make_problem(rng, 10, 2)
    weight = rng.uniform(0.5, 2.0, size=10)
    plain, same = reduce_problem(K, Y, weight, centred=True), reduce_cells(K, Y, weight, centred=True)
    np.testing.assert_array_equal(plain.targets, same.targets)
    assert isinstance(reduce_cells(K, Y, np.outer(weight, [1.0, 0.5])), MeasuredProblem)


def test_the_unit_of_alpha_follows_measured_cells(rng):
    """The complete problem has the sums of squares of the measured cells, whatever blanks hold."""
    K, Y, weights = make_cells(rng, weighted=True)
    problem = reduce_cells(K, np.where(weights > 0, Y, np.nan), weights)
    expected = np.average(Y**2, axis=0, weights=weights) * weights.max(axis=1).sum()
    np.testing.assert_allclose(np.sum(problem.complete.Y**2, axis=0), expected)


def test_a_path_is_the_fits_one_by_one(rng):
    K, Y, weights = make_cells(rng)
    problem = reduce_cells(K, Y, weights, centred=True)
    alphas = [3.0, 0.3, 0.03]
    for alpha, found in zip(alphas, output_kernel_path(problem, alphas), strict=True):
        assert found.value == pytest.approx(learn_output_kernel(problem, alpha).value, rel=2e-6)
