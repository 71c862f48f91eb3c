"""Missing targets: objectives, coefficients and gaps from the dense definition."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from convex.problems import (
    make_kernels,
    make_problem,
    random_stack,
)
from entangled_kernels.convex import (
    PENALTIES,
    KernelPart,
    OutputPenalty,
    alpha_unit,
    fixed_output_kernel,
    learn_diagonal,
    learn_missing,
    learn_multiview,
    learn_output_kernel,
    learn_separate,
    learn_shared,
    learn_weights,
    reduce_problem,
)

from reference import multiple_kernels as reference

PENALTY_CASES = [(name, constraint) for name in PENALTIES for constraint in (False, True)]


def make_partial(rng, n=20, p=3, weighted=False):
    K, Y = make_problem(rng, n, p)
    weights = (rng.random((n, p)) < 0.65).astype(float)
    weights[weights.max(axis=1) == 0.0] = 1.0
    if weighted:
        weights *= rng.uniform(0.5, 2.0, size=(n, p))
    return K, Y, weights


def dense_value(K, Y, weights, L, alpha, centred):
    """y^T (G + alpha W^-1)^-1 y / 2 without missing targets, with the best intercepts; the coefficients."""
    rows, outputs = np.nonzero(weights)
    y = Y[rows, outputs]
    G = K[np.ix_(rows, rows)] * L[np.ix_(outputs, outputs)] + np.diag(
        alpha / weights[rows, outputs]
    )
    factor = cho_factor(G)
    if centred:
        ones = np.eye(Y.shape[1])[outputs]  # (N, p)
        y = y - ones @ np.linalg.solve(
            ones.T @ cho_solve(factor, ones), ones.T @ cho_solve(factor, y)
        )
    c = cho_solve(factor, y)
    C = np.zeros_like(Y)
    C[rows, outputs] = c
    return 0.5 * y @ c, C


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("name", "constraint"), PENALTY_CASES)
def test_output_kernels_by_definition(rng, name, constraint, centred):
    K, Y, weights = make_partial(rng, weighted=centred)
    penalty = OutputPenalty(name, constraint)
    problem = reduce_problem(K, Y, weights, centred=centred)
    alpha = 0.3 * alpha_unit(problem, penalty=penalty)
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
    K, Y, weights = make_partial(rng)
    penalty = OutputPenalty(name)
    problem = reduce_problem(K, Y, weights, centred=True)
    alpha = 0.1 * alpha_unit(problem, penalty=penalty)
    found = learn_output_kernel(problem, alpha, penalty=penalty)
    built = penalty.build(3, 3)
    for size in (0.0, 1e-3, 1e-2, 0.1, 1.0):
        B = np.linalg.cholesky(found.L + 1e-9 * np.eye(3)) + size * rng.normal(size=(3, 3))
        L = B @ B.T
        value = dense_value(K, Y, weights, L, alpha, True)[0] + built.value(L[None])
        assert value >= found.value - found.gap


@pytest.mark.parametrize("rank", [1, 2])
def test_a_rank_is_kept_and_its_gap_holds_over_all_ranks(rng, rank):
    K, Y, weights = make_partial(rng)
    problem = reduce_problem(K, Y, weights, centred=True)
    alpha = 0.3 * alpha_unit(problem, OutputPenalty(rank=rank))
    found = learn_output_kernel(problem, alpha, penalty=OutputPenalty(rank=rank))
    free = learn_output_kernel(problem, alpha, penalty=OutputPenalty("trace"))
    assert np.linalg.matrix_rank(found.L, tol=1e-9) <= rank
    assert found.converged
    assert found.value - found.gap <= free.value
    assert free.value - free.gap <= found.value
    assert (np.diff(found.history) <= 0).all()


def test_a_given_output_kernel(rng):
    K, Y, weights = make_partial(rng, weighted=True)
    L = np.cov(rng.normal(size=(3, 9)))
    found = fixed_output_kernel(reduce_problem(K, Y, weights, centred=True), 0.2, L, tol=1e-7)
    value, C = dense_value(K, Y, weights, L, 0.2, True)
    np.testing.assert_allclose(found.C, C, atol=1e-6 * np.abs(C).max())
    assert found.value == pytest.approx(value, rel=1e-10)
    assert found.reason == "fixed"


def test_the_unit_of_alpha_leaves_out_missing_targets(rng):
    """The complete problem has the sums of squares of the targets that are not missing."""
    K, Y, weights = make_partial(rng, weighted=True)
    problem = reduce_problem(K, np.where(weights > 0, Y, np.nan), weights)
    expected = np.average(Y**2, axis=0, weights=weights) * weights.max(axis=1).sum()
    np.testing.assert_allclose(np.sum(problem.Y**2, axis=0), expected)


ALPHA = 0.3


def make_partial_kernels(rng, n=14, p=3, m=3, weighted=False):
    K, Y = make_kernels(rng, n, p, m)
    weights = (rng.random((n, p)) < 0.65).astype(float)
    weights[weights.max(axis=1) == 0.0] = 1.0
    if weighted:
        weights *= rng.uniform(0.5, 2.0, size=(n, p))
    return K, np.where(weights > 0.0, Y, np.nan), weights


STACK = random_stack(np.random.default_rng(3), 3, 3)
KERNEL_CASES = {
    "weights": (learn_weights, {}),
    "weights of norm 2": (learn_weights, {"norm": 2.0}),
    "given": (learn_weights, {"output_kernel": STACK[0]}),
    "diagonal": (learn_diagonal, {}),
    "listed": (learn_weights, {"output_kernel": STACK}),
    "own": (learn_separate, {}),
    "own of norm 1.5": (learn_separate, {"norm": 1.5}),
    "shared": (learn_shared, {}),
}


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", KERNEL_CASES)
def test_several_kernels_by_definition(rng, name, centred):
    K, Y, weights = make_partial_kernels(rng, weighted=centred)
    learn, settings = KERNEL_CASES[name]
    problem = reduce_problem([KernelPart(k) for k in K], Y, weights, centred=centred)
    found = learn(problem, ALPHA, **settings)
    C, value = reference.measured_ridge(K, found.T, np.nan_to_num(Y), weights, ALPHA, centred)
    # For the kernel that was found the model is the best to within the gap.
    assert value <= found.value * (1 + 1e-9)
    assert found.value <= value + found.gap + 1e-9 * value
    np.testing.assert_allclose(found.C, C, atol=5e-3 * np.abs(C).max())
    assert found.converged
    # Where the problem is not convex, the slope ends the search, and the gap may lag behind.
    assert found.gap <= (1e-2 if name == "shared" else 1e-6) * found.value
    # The same gap from the dense coefficients, which are zero for missing targets.
    S = np.array([C.T @ k @ C for k in K])
    p, norm = Y.shape[1], settings.get("norm", 1.0)
    if learn is learn_separate:
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
        L = found.T.sum(axis=0)
        conjugate = np.sum(S * L, axis=(1, 2)).max()
        own = p * np.linalg.eigvalsh(np.einsum("m,mpq->pq", found.weights, S))[-1]
        assert own <= np.sum(S * found.T) + 2e-3 * value
    else:
        T = settings.get("output_kernels", settings.get("output_kernel", np.eye(p)))
        conjugate = reference.dual_norm(np.sum(S * T, axis=(1, 2)), norm)
    # That of coefficients which are solved for lags behind that of the witness: first against
    # second order.
    assert 0.5 * (conjugate - np.sum(S * found.T)) <= 3e-3 * value


@pytest.mark.parametrize("sparse", [True, False])
def test_views(rng, sparse):
    K, Y, weights = make_partial_kernels(rng, weighted=True)
    problem = reduce_problem([KernelPart(k) for k in K], Y, weights, centred=True)
    alpha, eta = 0.4, 0.7
    found = learn_multiview(problem, alpha, eta, sparse=sparse)
    ridge = np.sqrt(alpha * eta) if sparse else np.cbrt(eta * alpha**2)
    C, value = reference.measured_ridge(K, found.T, np.nan_to_num(Y), weights, ridge, True)
    value += 0.5 * (found.weights.sum() if sparse else np.sum(found.T[0] ** 2))
    assert value <= found.value * (1 + 1e-9)
    assert found.value <= value + found.gap + 1e-9 * value
    np.testing.assert_allclose(found.C, C, atol=5e-3 * np.abs(C).max())
    assert found.converged
    assert found.gap <= 1e-6 * found.value


def test_features_with_missing_targets_are_their_gram_matrices(rng):
    parts = [rng.normal(size=(14, 2)) for _ in range(3)]
    _, Y, weights = make_partial_kernels(rng)
    small = reduce_problem(
        [KernelPart(A, True) for A in parts], Y, weights, centred=True, normalized=True
    )
    full = reduce_problem(
        [KernelPart(A @ A.T) for A in parts], Y, weights, centred=True, normalized=True
    )
    C = weights * rng.normal(size=Y.shape)
    C -= C.mean(axis=0)
    np.testing.assert_allclose(small.inner_products(C), full.inner_products(C))
    np.testing.assert_allclose(small.scales, full.scales)
    one, other = (learn_weights(problem, ALPHA) for problem in (small, full))
    assert one.value == pytest.approx(other.value, rel=2e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_minimum_with_missing_targets(rng, weighted):
    """Ridge regression of every output on its own targets, by complete problems."""
    K, Y, weights = make_partial(rng, weighted=weighted)
    last = []

    def solve(complete, before):
        last.append(before)
        return fixed_output_kernel(complete, ALPHA, np.eye(3))

    found = learn_missing(
        reduce_problem(K, Y, weights),
        ALPHA,
        solve,
        lambda S, _: (1.0, 0.5 * np.trace(S[0])),
        tol=1e-7,
    )
    value, C = dense_value(K, Y, weights, np.eye(3), ALPHA, False)
    np.testing.assert_allclose(found.C, C, atol=1e-6)
    assert found.value == pytest.approx(value, rel=1e-10)
    assert (found.converged, found.reason) == (True, "tolerance")
    assert found.gap <= 1e-14 * found.value
    assert found.n_iter == len(found.history) == len(last)
    assert (np.diff(found.history) <= 0).all()
    # Each complete problem is given the result of the one before.
    assert last[0] is None
    assert all(result is not None for result in last[1:])


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_the_gap_bounds_the_error_of_any_step(rng, steps):
    K, Y, weights = make_partial(rng, weighted=True)
    problem = reduce_problem(K, np.where(weights > 0.0, Y, np.nan), weights)
    found = learn_missing(
        problem,
        0.05,
        lambda complete, _: fixed_output_kernel(complete, 0.05, np.eye(3)),
        lambda S, _: (1.0, 0.5 * np.trace(S[0])),
        max_iter=steps,
        tol=1e-9,
    )
    error = found.value - dense_value(K, Y, weights, np.eye(3), 0.05, False)[0]
    assert 0.0 < error <= found.gap
    assert (found.reason, found.converged) == ("max_iter", False)
