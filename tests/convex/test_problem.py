"""Problems: weights, intercepts, scales and coordinates."""

import numpy as np
import pytest

from convex.problems import (
    ALPHAS,
    make_kernels,
    make_problem,
)
from entangled_kernels.convex import (
    KernelPart,
    OutputPenalty,
    alpha_unit,
    diagonalise,
    fixed_output_kernel,
    learn_output_kernel,
    learn_separate,
    learn_weights,
    reduce_problem,
)
from entangled_kernels.convex.problem import compress, retarget

from reference import output_kernel as reference


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("n", "p", "columns"), [(12, 3, None), (12, 3, 2), (5, 8, None)])
def test_the_parts_make_up_the_weighted_and_centred_problem(rng, n, p, columns, centred):
    K, Y = make_problem(rng, n, p, columns)
    w = rng.uniform(0.5, 2.0, size=n)
    problem = diagonalise(reduce_problem(K, Y, w, centred=centred))
    H = np.eye(n) - np.outer(np.ones(n), w) / w.sum() if centred else np.eye(n)
    root = np.diag(np.sqrt(w))
    weighted_K, weighted_Y = root @ H @ K @ H.T @ root, root @ H @ Y
    U = problem.vectors
    np.testing.assert_allclose((U * problem.kernels[0]) @ U.T, weighted_K, atol=1e-10)
    np.testing.assert_allclose(problem.Y, weighted_Y, atol=1e-10)
    np.testing.assert_allclose(problem.targets, U.T @ weighted_Y, atol=1e-10)
    assert problem.rest == pytest.approx(
        np.sum((weighted_Y - U @ U.T @ weighted_Y) ** 2), abs=1e-12
    )
    np.testing.assert_allclose(problem.mean_y, w @ Y / w.sum() if centred else 0.0)
    np.testing.assert_allclose(problem.mean_k[0], w @ K / w.sum() if centred else 0.0)


def test_a_gram_matrix_in_single_precision_is_psd(rng):
    X = rng.normal(size=(60, 3)).astype(np.float32)
    K = X @ X.T
    assert np.linalg.eigvalsh(K.astype(float))[0] < 0
    assert diagonalise(reduce_problem(K, rng.normal(size=(60, 2)))).kernels.shape[1] >= 3


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    ("n", "p", "columns"), [(12, 3, None), (12, 3, 2), (5, 8, None), (6, 1, 3)]
)
def test_sylvester_against_kronecker(rng, alpha, n, p, columns):
    K, Y = make_problem(rng, n, p, columns)
    factor = rng.normal(size=(p, max(1, p - 1)))
    L = factor @ factor.T
    C = fixed_output_kernel(reduce_problem(K, Y), alpha, L).C
    np.testing.assert_allclose(C, reference.sylvester(K, Y, L, alpha), atol=1e-9 * np.abs(C).max())
    assert np.abs(K @ C @ L + alpha * C - Y).max() < 1e-8


@pytest.mark.parametrize("rank", [None, 2])
def test_scaling_kernel_and_targets(rng, rank):
    """With alpha in its unit, kernel and targets may be in any units."""
    K, Y = make_problem(rng, 12, 4)
    problem = reduce_problem(K, Y)
    plain = learn_output_kernel(
        problem,
        0.2 * alpha_unit(problem, OutputPenalty(rank=rank)),
        penalty=OutputPenalty(rank=rank),
        tol=1e-8,
    )
    for s, c in [(1e3, 1.0), (1.0, 1e-5), (1e-4, 1e6)]:
        problem = reduce_problem(s * K, c * Y)
        scaled = learn_output_kernel(
            problem,
            0.2 * alpha_unit(problem, OutputPenalty(rank=rank)),
            penalty=OutputPenalty(rank=rank),
            tol=1e-8,
        )
        fit = K @ plain.C @ plain.L
        np.testing.assert_allclose(
            s * K @ scaled.C @ scaled.L / c, fit, atol=1e-6 * np.abs(fit).max()
        )


def test_outputs_that_repeat_or_say_nothing(rng):
    """Only the directions that matter are worked on, and the kernel in all outputs comes out."""
    K, Y = make_problem(rng, 12, 3)
    wide = np.column_stack([Y, Y[:, 0], np.zeros(12)])
    problem = reduce_problem(K, wide)
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
            reduce_problem(K, Y, copies, centred=centred),
            0.3,
            penalty=OutputPenalty(rank=rank),
            tol=1e-9,
            max_iter=5000,
        )
        repeated = learn_output_kernel(
            reduce_problem(K[np.ix_(rows, rows)], Y[rows], centred=centred),
            0.3,
            penalty=OutputPenalty(rank=rank),
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
    with pytest.raises(ValueError, match="kernel must be positive semi-definite"):
        diagonalise(reduce_problem(K - np.eye(6), Y))
    with pytest.raises(ValueError, match="kernel must be positive semi-definite"):
        diagonalise(reduce_problem(-np.eye(6), Y))
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
    assert alpha_unit(problem, OutputPenalty(rank=2)) == pytest.approx(s * np.sqrt(square / s))


@pytest.mark.parametrize("centred", [True, False])
def test_other_targets_for_the_same_gram_matrix(rng, centred):
    K, Y = make_problem(rng, 9, 3)
    weight = rng.uniform(0.5, 2.0, size=9)
    other = rng.normal(size=(9, 3)) + 4.0
    left = retarget(diagonalise(reduce_problem(K, Y, weight, centred=centred)), other)
    right = diagonalise(reduce_problem(K, other, weight, centred=centred))
    for name in ("kernels", "vectors", "mean_k"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for name in ("Y", "targets", "rest", "mean_y", "root_weight"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_weights_that_overflow_are_refused(rng, shape):
    K, Y = make_problem(rng, 6, 2)
    for weight in (1e200, 1e300):
        with pytest.raises(
            ValueError, match="sample_weight has values so large that weighted squares"
        ):
            reduce_problem(K, Y, np.full(shape, weight))
    with pytest.raises(ValueError, match="sample_weight must have a finite sum"):
        reduce_problem(K, Y, np.full(shape, 1e308))


@pytest.fixture
def features(rng):
    return [rng.normal(size=(20, d)) + 1.0 for d in (2, 3, 1)]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_features_are_their_gram_matrices(features, rng, centred, normalized):
    """Compressed coordinates or not, the same fit comes out."""
    Y, w = rng.normal(size=(20, 2)) + 3.0, rng.uniform(0.5, 2.0, size=20)
    settings = {"centred": centred, "normalized": normalized}
    small = reduce_problem([KernelPart(A, True) for A in features], Y, w, **settings)
    full = reduce_problem([KernelPart(A @ A.T) for A in features], Y, w, **settings)
    mixed = reduce_problem(
        [KernelPart(A @ A.T, False) for A in features[:2]] + [KernelPart(features[2], True)],
        Y,
        w,
        **settings,
    )
    assert small.kernels.shape == (3, 6, 6)
    assert full.kernels.shape == mixed.kernels.shape == (3, 20, 20)
    results = [learn_weights(problem, 0.5, tol=1e-5) for problem in (small, full, mixed)]
    for other in results[1:]:
        assert other.value == pytest.approx(results[0].value, rel=1e-8)
        np.testing.assert_allclose(other.weights, results[0].weights, atol=1e-3)
        np.testing.assert_allclose(other.intercept, results[0].intercept, atol=1e-2)
    np.testing.assert_allclose(small.mean_k, full.mean_k)
    np.testing.assert_allclose(small.scales, full.scales)
    assert small.rest == pytest.approx(
        np.sum((full.Y - small.vectors @ (small.vectors.T @ full.Y)) ** 2)
    )
    assert full.rest == 0.0


@pytest.mark.parametrize("as_features", [True, False])
def test_compressed_to_what_kernels_can_reach(rng, as_features):
    """Gram matrices of rank 3 and 2 of 20 rows, the same features twice: the same fit from 3 coordinates."""
    A = rng.normal(size=(20, 3))
    Y, w = rng.normal(size=(20, 2)), rng.uniform(0.5, 2.0, size=20)
    parts = [KernelPart(B if as_features else B @ B.T, as_features) for B in (A, A[:, :2])]
    full = reduce_problem(parts, Y, w, centred=True)
    small = compress(full)
    assert small.kernels.shape == (2, 3, 3)
    one, other = (learn_weights(problem, 0.5, tol=1e-6) for problem in (full, small))
    assert other.value == pytest.approx(one.value, rel=1e-9)
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-4)
    np.testing.assert_allclose(
        small.rows(small.targets, 1.0), full.rows(full.targets, 1.0), atol=1e-10
    )
    whole = reduce_problem([KernelPart(np.eye(20))], Y)
    assert compress(whole) is whole


def test_the_intercept_leaves_residuals_without_a_mean(rng):
    K, Y = make_kernels(rng, 15, 3, 2)
    result = learn_separate(reduce_problem([KernelPart(k) for k in K], Y + 5.0, centred=True), 0.3)
    fit = sum(k @ result.C @ T for k, T in zip(K, result.T, strict=True)) + result.intercept
    np.testing.assert_allclose((Y + 5.0 - fit).mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(Y + 5.0 - fit, 0.3 * result.C, atol=1e-8)
