"""Objectives, coefficients and gaps over measured cells, from the dense definition."""

import numpy as np
import pytest

from entangled_kernels.multiple_kernels import (
    KernelPart,
    MeasuredKernels,
    learn_diagonal,
    learn_listed,
    learn_multiview,
    learn_own,
    learn_shared,
    learn_weights,
    reduce_cells,
    reduce_kernels,
)
from multiple_kernels.problems import make_kernels, random_stack

from reference import multiple_kernels as reference

ALPHA = 0.3


def make_cells(rng, n=14, p=3, m=3, weighted=False):
    K, Y = make_kernels(rng, n, p, m)
    weights = (rng.random((n, p)) < 0.65).astype(float)
    weights[weights.max(axis=1) == 0.0] = 1.0
    if weighted:
        weights *= rng.uniform(0.5, 2.0, size=(n, p))
    return K, np.where(weights > 0.0, Y, np.nan), weights


STACK = random_stack(np.random.default_rng(3), 3, 3)
CASES = {
    "weights": (learn_weights, {}),
    "weights of norm 2": (learn_weights, {"norm": 2.0}),
    "given": (learn_weights, {"output_kernel": STACK[0]}),
    "diagonal": (learn_diagonal, {}),
    "listed": (learn_listed, {"output_kernels": STACK}),
    "own": (learn_own, {}),
    "own of norm 1.5": (learn_own, {"norm": 1.5}),
    "shared": (learn_shared, {}),
}


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_value_coefficients_and_gap_are_those_of_the_dense_definition(rng, name, centred):
    K, Y, weights = make_cells(rng, weighted=centred)
    learn, settings = CASES[name]
    problem = reduce_cells([KernelPart(k) for k in K], Y, weights, centred=centred)
    found = learn(problem, ALPHA, **settings)
    C, value = reference.measured_ridge(K, found.output_kernels, np.nan_to_num(Y), weights, ALPHA, centred)
    # For the kernel that was found the model is the best to within the gap.
    assert value <= found.value * (1 + 1e-9)
    assert found.value <= value + found.gap + 1e-9 * value
    np.testing.assert_allclose(found.C, C, atol=5e-3 * np.abs(C).max())
    assert found.converged
    # Where the problem is not convex, the slope ends the search, and the gap may lag behind.
    assert found.gap <= (1e-2 if name == "shared" else 1e-6) * found.value
    # The same gap from the dense coefficients, which are zero in blanks.
    S = np.array([C.T @ k @ C for k in K])
    p, norm = Y.shape[1], settings.get("norm", 1.0)
    if learn is learn_own:
        levels = np.maximum(np.linalg.eigvalsh(S).ravel(), 0.0)
        conjugate = p ** (1 / norm) * reference.dual_norm(levels, norm)
        w, known = found.witness, weights > 0.0
        assert not w[~known].any()
        assert np.abs(w.sum(axis=0)).max() <= (1e-9 if centred else np.inf)
        # The bound of unit weights, and what other weights change.
        bound = reference.own_bound(K, np.nan_to_num(Y), w, ALPHA, norm)
        bound -= ALPHA / 2 * np.sum(w[known] ** 2 * (1.0 / weights[known] - 1.0))
        assert -1e-9 * value <= value - bound <= found.gap + 1e-9 * value
    elif learn is learn_diagonal:
        conjugate = np.einsum("mpp->mp", S).max(axis=0).sum()
    elif learn is learn_shared:
        L = found.output_kernels.sum(axis=0)
        conjugate = np.sum(S * L, axis=(1, 2)).max()
        own = p * np.linalg.eigvalsh(np.einsum("m,mpq->pq", found.weights, S))[-1]
        assert own <= np.sum(S * found.output_kernels) + 2e-3 * value
    else:
        T = settings.get("output_kernels", settings.get("output_kernel", np.eye(p)))
        conjugate = reference.dual_norm(np.sum(S * T, axis=(1, 2)), norm)
    # That of coefficients which are solved for lags behind that of the witness: first against second order.
    assert 0.5 * (conjugate - np.sum(S * found.output_kernels)) <= 3e-3 * value


@pytest.mark.parametrize("sparse", [True, False])
def test_views(rng, sparse):
    K, Y, weights = make_cells(rng, weighted=True)
    problem = reduce_cells([KernelPart(k) for k in K], Y, weights, centred=True)
    alpha, eta = 0.4, 0.7
    found = learn_multiview(problem, alpha, eta, sparse=sparse)
    ridge = np.sqrt(alpha * eta) if sparse else np.cbrt(eta * alpha**2)
    C, value = reference.measured_ridge(K, found.output_kernels, np.nan_to_num(Y), weights, ridge, True)
    value += 0.5 * (found.weights.sum() if sparse else np.sum(found.output_kernels[0] ** 2))
    assert value <= found.value * (1 + 1e-9)
    assert found.value <= value + found.gap + 1e-9 * value
    np.testing.assert_allclose(found.C, C, atol=5e-3 * np.abs(C).max())
    assert found.converged
    assert found.gap <= 1e-6 * found.value


@pytest.mark.parametrize("name", ["weights", "diagonal", "own"])
def test_no_other_parameters_are_better(rng, name):
    K, Y, weights = make_cells(rng)
    learn, settings = CASES[name]
    found = learn(reduce_cells([KernelPart(k) for k in K], Y, weights), ALPHA, **settings)
    m, p = len(K), Y.shape[1]
    for size in (1e-3, 1e-2, 0.1, 1.0):
        if name == "own":
            T = found.output_kernels + size * random_stack(rng, m, p)
            T *= p / np.trace(T, axis1=1, axis2=2).sum()
        else:
            d = found.weights + size * rng.random(found.weights.shape)
            d = d / d.sum(axis=0)
            T = np.einsum("m...,pq->mpq", d, np.eye(p)) if d.ndim == 1 else d[:, :, None] * np.eye(p)
        value = reference.measured_ridge(K, T, np.nan_to_num(Y), weights, ALPHA, False)[1]
        assert value >= found.value - found.gap


def test_features_are_their_gram_matrices(rng):
    parts = [rng.normal(size=(14, 2)) for _ in range(3)]
    _, Y, weights = make_cells(rng)
    small = reduce_cells([KernelPart(A, True) for A in parts], Y, weights, centred=True, normalized=True)
    full = reduce_cells([KernelPart(A @ A.T) for A in parts], Y, weights, centred=True, normalized=True)
    C = weights * rng.normal(size=Y.shape)
    C -= C.mean(axis=0)
    np.testing.assert_allclose(small.squares(C), full.squares(C))
    np.testing.assert_allclose(small.scales, full.scales)
    one, other = (learn_weights(problem, ALPHA) for problem in (small, full))
    assert one.value == pytest.approx(other.value, rel=2e-6)


def test_complete_targets_stay_a_plain_problem(rng):
    K, Y = make_kernels(rng, 10, 2, 2)
    weight = rng.uniform(0.5, 2.0, size=10)
    parts = [KernelPart(k) for k in K]
    plain, same = (reduce(parts, Y, weight, centred=True) for reduce in (reduce_kernels, reduce_cells))
    np.testing.assert_array_equal(plain.targets, same.targets)
    assert isinstance(reduce_cells(parts, Y, np.outer(weight, [1.0, 0.5])), MeasuredKernels)


def test_steps_run_out(rng):
    K, Y, weights = make_cells(rng)
    found = learn_weights(reduce_cells([KernelPart(k) for k in K], Y, weights), 1e-3, max_iter=2, tol=1e-8)
    assert (found.converged, found.reason) == (False, "max_iter")
