import numpy as np
import pytest

from entangled_kernels.output_kernel import (
    alpha_unit,
    learn_output_kernel,
    reduce_problem,
    solve_sylvester,
)
from entangled_kernels.output_kernel.problem import retarget, typical_level
from output_kernel.problems import ALPHAS, make_problem

from reference import output_kernel as reference


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("n", "p", "columns"), [(12, 3, None), (12, 3, 2), (5, 8, None)])
def test_the_parts_make_up_the_weighted_and_centred_problem(rng, n, p, columns, centred):
    K, Y = make_problem(rng, n, p, columns)
    w = rng.uniform(0.5, 2.0, size=n)
    problem = reduce_problem(K, Y, w, centred=centred)
    H = np.eye(n) - np.outer(np.ones(n), w) / w.sum() if centred else np.eye(n)
    root = np.diag(np.sqrt(w))
    weighted_K, weighted_Y = root @ H @ K @ H.T @ root, root @ H @ Y
    U = problem.vectors
    np.testing.assert_allclose((U * problem.values) @ U.T, weighted_K, atol=1e-10)
    np.testing.assert_allclose(problem.Y, weighted_Y, atol=1e-10)
    np.testing.assert_allclose(U @ problem.targets @ problem.outputs.T + problem.rest, weighted_Y, atol=1e-10)
    np.testing.assert_allclose(U.T @ problem.rest, 0.0, atol=1e-10)
    np.testing.assert_allclose(problem.mean_y, w @ Y / w.sum() if centred else 0.0)
    np.testing.assert_allclose(problem.mean_k, w @ K / w.sum() if centred else 0.0)


def test_arguments_stay_as_they_were(rng):
    K, Y = make_problem(rng, 6, 2)
    kept = K.copy(), Y.copy()
    reduce_problem(K, Y, np.full(6, 2.0), centred=True)
    np.testing.assert_array_equal(K, kept[0])
    np.testing.assert_array_equal(Y, kept[1])


def test_a_gram_matrix_in_single_precision_is_psd(rng):
    X = rng.normal(size=(60, 3)).astype(np.float32)
    K = X @ X.T
    assert np.linalg.eigvalsh(K.astype(float))[0] < 0
    assert len(reduce_problem(K, rng.normal(size=(60, 2))).values) >= 3


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("n", "p", "columns"), [(12, 3, None), (12, 3, 2), (5, 8, None), (6, 1, 3)])
def test_sylvester_against_kronecker(rng, alpha, n, p, columns):
    K, Y = make_problem(rng, n, p, columns)
    factor = rng.normal(size=(p, max(1, p - 1)))
    L = factor @ factor.T
    C = solve_sylvester(reduce_problem(K, Y), L, alpha)
    np.testing.assert_allclose(C, reference.sylvester(K, Y, L, alpha), atol=1e-9 * np.abs(C).max())
    assert np.abs(K @ C @ L + alpha * C - Y).max() < 1e-8


@pytest.mark.parametrize("rank", [None, 2])
def test_scaling_kernel_and_targets(rng, rank):
    """With alpha in its unit, kernel and targets may be in any units."""
    K, Y = make_problem(rng, 12, 4)
    problem = reduce_problem(K, Y)
    plain = learn_output_kernel(problem, 0.2 * alpha_unit(problem, rank=rank), rank=rank, tol=1e-8)
    for s, c in [(1e3, 1.0), (1.0, 1e-5), (1e-4, 1e6)]:
        problem = reduce_problem(s * K, c * Y)
        scaled = learn_output_kernel(problem, 0.2 * alpha_unit(problem, rank=rank), rank=rank, tol=1e-8)
        fit = K @ plain.C @ plain.L
        np.testing.assert_allclose(s * K @ scaled.C @ scaled.L / c, fit, atol=1e-6 * np.abs(fit).max())


def test_outputs_that_repeat_or_say_nothing(rng):
    """Only the directions that matter are worked on, and the kernel in all outputs comes out."""
    K, Y = make_problem(rng, 12, 3)
    wide = np.column_stack([Y, Y[:, 0], np.zeros(12)])
    problem = reduce_problem(K, wide)
    assert problem.targets.shape[1] == 3
    L = learn_output_kernel(problem, 0.3, tol=1e-9).L
    np.testing.assert_allclose(L[3], L[0], atol=1e-8 * np.abs(L).max())
    assert np.abs(L[4]).max() < 1e-12 * np.abs(L).max()


@pytest.mark.parametrize("rank", [None, 3])
def test_weights_count_copies_and_intercepts_are_free(rng, rank):
    K, Y = make_problem(rng, 10, 3)
    copies = np.array([1, 2, 0, 1, 3, 1, 1, 2, 1, 1])
    rows = np.repeat(np.arange(10), copies)
    for centred in (False, True):
        weighted = learn_output_kernel(
            reduce_problem(K, Y, copies, centred=centred), 0.3, rank=rank, tol=1e-9, max_iter=5000
        )
        repeated = learn_output_kernel(
            reduce_problem(K[np.ix_(rows, rows)], Y[rows], centred=centred),
            0.3,
            rank=rank,
            tol=1e-9,
            max_iter=5000,
        )
        tolerance = {"atol": 1e-6 * np.abs(weighted.L).max()}
        np.testing.assert_allclose(weighted.L, repeated.L, **tolerance)
        np.testing.assert_allclose(weighted.intercept, repeated.intercept, **tolerance)
        fit = K @ weighted.C @ weighted.L
        np.testing.assert_allclose(fit, K[:, rows] @ repeated.C @ repeated.L, **tolerance)
        residual = copies[:, None] * (Y - fit - weighted.intercept)
        np.testing.assert_allclose(residual, 0.3 * weighted.C, atol=1e-8)
        if centred:
            np.testing.assert_allclose(weighted.C.sum(axis=0), 0.0, atol=1e-8)


def test_errors_name_the_argument(rng):
    K, Y = make_problem(rng, 6, 2)
    with pytest.raises(ValueError, match="K must be positive semi-definite, got an eigenvalue of -"):
        reduce_problem(K - np.eye(6), Y)
    with pytest.raises(ValueError, match="K must be positive semi-definite"):
        reduce_problem(-np.eye(6), Y)
    with pytest.raises(ValueError, match=r"got shapes \(6, 6\) and \(5, 2\)"):
        reduce_problem(K, Y[:5])
    with pytest.raises(ValueError, match="squares overflow"):
        reduce_problem(K, 1e200 * Y)


def test_alpha_unit_by_definition(rng):
    """a s with s = tr(K) / n, c^2 = ||Y||^2 / p and a = (c^2 / s)^1/3, for the trace (c^2 / s)^1/2."""
    K, Y = make_problem(rng, 12, 3)
    problem = reduce_problem(K, Y)
    s, square = np.trace(K) / 12, np.sum(Y**2) / 3
    assert alpha_unit(problem) == pytest.approx(s * np.cbrt(square / s))
    assert alpha_unit(problem, rank=2) == pytest.approx(s * np.sqrt(square / s))


def test_typical_level_balances_its_penalty():
    assert typical_level(8.0, 2.0) == pytest.approx(2.0)
    assert typical_level(9.0, 1.0) == pytest.approx(3.0)


@pytest.mark.parametrize("centred", [True, False])
def test_other_targets_for_the_same_gram_matrix(rng, centred):
    K, Y = make_problem(rng, 9, 3)
    weight = rng.uniform(0.5, 2.0, size=9)
    other = rng.normal(size=(9, 3)) + 4.0
    left = retarget(reduce_problem(K, Y, weight, centred=centred), other, centred=centred)
    right = reduce_problem(K, other, weight, centred=centred)
    for name in ("values", "vectors", "mean_k"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for name in ("Y", "rest", "mean_y", "root_weight"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-12)
    np.testing.assert_allclose(left.targets @ left.outputs.T, right.targets @ right.outputs.T, atol=1e-12)
