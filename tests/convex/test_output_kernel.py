"""Output kernel learning against the dense definition and the published solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics.pairwise import rbf_kernel

from convex.problems import (
    ALPHAS,
    make_problem,
    problems,
)
from entangled_kernels.convex import (
    OutputPenalty,
    alpha_unit,
    fixed_output_kernel,
    learn_output_kernel,
    output_kernel_path,
    reduce_problem,
)

from reference import convex as reference
from reference import output_kernel as plain


@given(problems())
@settings(max_examples=60, deadline=None)
def test_invariants(case):
    """Sylvester residual, a psd L of its rank, a history that never rises and ends in the objective."""
    K, Y, alpha, rank = case
    result = learn_output_kernel(
        reduce_problem(K, Y), alpha, penalty=OutputPenalty(rank=rank), tol=1e-6
    )
    assert np.abs(K @ result.C @ result.L + alpha * result.C - Y).max() <= 1e-8 * np.abs(Y).max()
    assert result.converged
    np.testing.assert_array_equal(result.L, result.L.T)
    levels = np.linalg.eigvalsh(result.L)
    assert levels[0] >= -1e-12 * levels[-1]
    if rank is not None:
        assert np.sum(levels > 1e-12 * levels[-1]) <= rank
    assert (np.diff(result.history) <= 0).all()
    assert len(result.history) == result.n_iter + 1
    value = plain.objective(K, Y, result.C, result.L, alpha, rank)
    assert result.value == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_low_rank_is_stationary_in_its_factor(rng, alpha, rank):
    K, Y = make_problem(rng, 15, 4)
    result = learn_output_kernel(
        reduce_problem(K, Y), alpha, penalty=OutputPenalty(rank=rank), tol=1e-9, max_iter=5000
    )
    assert result.converged
    levels, V = np.linalg.eigh(result.L)
    B = V[:, -rank:] * np.sqrt(np.maximum(levels[-rank:], 0.0))

    def in_B(B):
        return plain.reduced_objective(K, Y, B @ B.T, alpha, rank)

    for _ in range(5):
        D = rng.normal(size=B.shape) * max(np.abs(B).max(), 1e-6)
        assert abs(plain.directional_derivative(in_B, B, D, 1e-5)) < 1e-5 * result.value


def test_the_published_alternation_ends_at_the_same_kernel(rng):
    K, Y = make_problem(rng, 15, 3)
    result = learn_output_kernel(reduce_problem(K, Y), 5.0, tol=1e-10)
    slow = plain.alternate(K, Y, 5.0, steps=400)
    np.testing.assert_allclose(result.L, slow, atol=1e-7 * np.abs(slow).max())


def test_tolerance_bounds_the_error(rng):
    """||L - L_opt|| <= tol ||L|| and the objective is within tol^2 ||L||^2 / 2 of its minimum."""
    K, Y = make_problem(rng, 30, 6)
    problem = reduce_problem(K, Y)
    for alpha in ALPHAS:
        best = learn_output_kernel(problem, alpha, tol=1e-11)
        for tol in (0.1, 1e-2, 1e-4):
            rough = learn_output_kernel(problem, alpha, tol=tol)
            size = np.linalg.norm(rough.L)
            assert np.linalg.norm(rough.L - best.L) <= tol * size
            assert rough.value - best.value <= tol**2 * size**2 / 2 + 1e-12 * best.value


def test_trace_penalty_has_a_largest_alpha(rng):
    """L is zero from alpha = ||K^1/2 Y||_2 on, and not below."""
    K, Y = make_problem(rng, 15, 4)
    values, vectors = np.linalg.eigh(K)
    largest = np.linalg.norm(np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ Y), 2)
    problem = reduce_problem(K, Y)
    above = learn_output_kernel(problem, 1.2 * largest, penalty=OutputPenalty(rank=2), tol=1e-12).L
    below = learn_output_kernel(problem, 0.8 * largest, penalty=OutputPenalty(rank=2), tol=1e-8).L
    assert np.trace(above) < 1e-8 * np.trace(below)


def test_planted_structure(rng):
    """Two latent functions behind twelve targets: their mixing is the kernel's range."""
    X = rng.normal(size=(150, 3))
    K = rbf_kernel(X, gamma=0.3)
    mixing = rng.normal(size=(2, 12))
    signal = np.linalg.cholesky(K + 1e-8 * np.eye(150)) @ rng.normal(size=(150, 2)) @ mixing
    problem = reduce_problem(K, signal + 0.1 * rng.normal(size=signal.shape))
    planted = np.linalg.qr(mixing.T)[0]
    full = learn_output_kernel(problem, 5.0).L
    levels, V = np.linalg.eigh(full)
    assert levels[-2:].sum() > 0.95 * levels.sum()
    low = learn_output_kernel(problem, 5.0, penalty=OutputPenalty(rank=2)).L
    for L in (full, low):
        V = np.linalg.eigh(L)[1][:, -2:]
        # Cosine of the larger angle between the two planes.
        assert np.linalg.svd(planted.T @ V)[1].min() > 0.999


@pytest.mark.parametrize("rank", [None, 2])
def test_rotating_the_outputs_rotates_the_kernel(rng, rank):
    K, Y = make_problem(rng, 12, 4)
    R = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    plain, turned = (
        learn_output_kernel(reduce_problem(K, T), 0.3, penalty=OutputPenalty(rank=rank), tol=1e-9).L
        for T in (Y, Y @ R)
    )
    np.testing.assert_allclose(turned, R.T @ plain @ R, atol=1e-5 * np.abs(plain).max())


def test_a_singular_start_is_left(rng):
    K, Y = make_problem(rng, 12, 3)
    problem = reduce_problem(K, Y)
    expected = learn_output_kernel(problem, 0.3, tol=1e-9).L
    for start in (np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0]), 1e8 * np.eye(3)):
        L = learn_output_kernel(problem, 0.3, start=start, tol=1e-9).L
        np.testing.assert_allclose(L, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("scale", [1e-100, 1e-60, 1e60])
def test_extreme_units(rng, rank, scale):
    """No overflow or division by zero, at an alpha that then is far too large or too small."""
    K, Y = make_problem(rng, 12, 3)
    for k, y in ((K, scale * Y), (scale * K, Y)):
        result = learn_output_kernel(reduce_problem(k, y), 1.0, penalty=OutputPenalty(rank=rank))
        assert np.isfinite(k @ result.C @ result.L).all()
        assert (np.diff(result.history) <= 0).all()


CASES = [
    ("frobenius", False, {}),
    ("frobenius", True, {}),
    ("schatten", False, {"exponent": 4 / 3}),
    ("schatten", True, {"exponent": 1.2}),
    ("trace", False, {}),
    ("trace", True, {}),
    ("elastic", False, {"l1_ratio": 0.7}),
    ("elastic", True, {"l1_ratio": 0.5}),
    ("cluster", True, {"level_bounds": (0.1, 10.0)}),
    ("entrywise", False, {"exponent": 4 / 3}),
    ("entrywise", True, {"exponent": 6 / 5}),
]
EACH = pytest.mark.parametrize(
    ("name", "constraint", "settings"),
    CASES,
    ids=[f"{c[0]}-{'ball' if c[1] else 'penalty'}" for c in CASES],
)


def random_problem(rng):
    n, p = rng.integers(3, 61, size=2)
    K, Y = make_problem(rng, n, p, columns=rng.choice([None, 2]), rank=rng.integers(1, 4))
    return K * 10.0 ** rng.uniform(-2, 2), Y * 10.0 ** rng.uniform(-2, 2)


@EACH
def test_random_problems(name, constraint, settings, rng):
    """Gap at most 1e-6 of the objective, from the dense definition; L psd and within the constraint."""
    penalty = OutputPenalty(name, constraint, **settings)
    for _ in range(10):
        K, Y = random_problem(rng)
        problem = reduce_problem(K, Y)
        alpha = alpha_unit(problem, penalty=penalty) * 10.0 ** rng.uniform(-4, 2)
        result = learn_output_kernel(problem, alpha, penalty=penalty, max_iter=5000)
        assert result.converged, result
        np.testing.assert_array_equal(result.L, result.L.T)
        levels = np.linalg.eigvalsh(result.L)
        assert levels[0] >= -1e-12 * levels[-1]
        value = reference.output_kernel_objective(
            K, Y, result.L, alpha, name, constraint, **settings
        )
        bound = reference.output_kernel_bound(
            K, Y, result.witness, alpha, name, constraint, **settings
        )
        assert result.value == pytest.approx(value, rel=1e-7)
        assert -1e-8 * value <= value - bound <= 1.01e-6 * value
        assert result.gap == pytest.approx(value - bound, rel=1e-2, abs=1e-7 * value)
        if constraint and name not in ("elastic", "cluster"):
            p = len(result.L)
            limit = reference.norm(name, np.eye(p), **settings)
            assert reference.norm(name, result.L, **settings) <= limit * (1 + 1e-9)


ALL = [OutputPenalty(name, ball, **settings) for name, ball, settings in CASES]
ALL += [OutputPenalty(rank=2), OutputPenalty(rank=6)]


@pytest.mark.parametrize("penalty", ALL, ids=lambda penalty: f"{penalty.name}-{penalty.rank}")
def test_paths_end_where_cold_starts_do(penalty, rng):
    K, Y = make_problem(rng, 25, 6)
    problem = reduce_problem(K, Y, centred=True)
    alphas = alpha_unit(problem, penalty=penalty) * np.logspace(2, -3, 6)
    settings = {"penalty": penalty, "max_iter": 5000, "tol": 1e-3 if penalty.rank is None else 1e-8}
    for alpha, warm in zip(alphas, output_kernel_path(problem, alphas, **settings), strict=True):
        cold = learn_output_kernel(problem, alpha, **settings)
        assert warm.converged
        assert abs(warm.value - cold.value) <= 2e-6 * cold.value


@pytest.mark.parametrize("penalty", ALL, ids=lambda penalty: f"{penalty.name}-{penalty.rank}")
def test_nothing_to_learn(penalty):
    """Targets outside the range of K, targets of zero, or a kernel of zero: C = Y / alpha."""
    K, Y = np.diag([1.0, 1.0, 0.0]), np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    result = learn_output_kernel(reduce_problem(K, Y), 0.5, penalty=penalty)
    np.testing.assert_allclose(result.C, Y / 0.5)
    assert result.value == pytest.approx(np.sum(Y**2) / 1.0)
    assert (result.L.any(), result.converged) == (penalty.is_ball, True)
    assert not learn_output_kernel(reduce_problem(K, 0 * Y), 0.5, penalty=penalty).C.any()
    assert alpha_unit(reduce_problem(K, 0 * Y), penalty) == 1.0
    zero = learn_output_kernel(reduce_problem(0 * K, Y, centred=True), 1.0, penalty=penalty)
    np.testing.assert_array_equal(zero.intercept, Y.mean(axis=0))


def test_frobenius_is_the_newton_solver(rng):
    for alpha in (0.01, 1.0, 30.0):
        K, Y = make_problem(rng, 20, 5)
        problem = reduce_problem(K, Y)
        newton = learn_output_kernel(problem, alpha, tol=1e-9)
        for penalty in (
            OutputPenalty("schatten", exponent=2.0),
            OutputPenalty("entrywise", exponent=2.0),
        ):
            result = learn_output_kernel(problem, alpha, penalty=penalty, tol=1e-6, max_iter=5000)
            assert result.value == pytest.approx(newton.value, rel=1e-10)
            np.testing.assert_allclose(result.L, newton.L, atol=1e-4 * np.abs(newton.L).max())


def test_the_trace_is_the_full_rank(rng):
    """The rank path with rank to spare, and its gap bounds what a smaller rank loses."""
    K, Y = make_problem(rng, 15, 4)
    problem = reduce_problem(K, Y)
    trace = learn_output_kernel(problem, 0.3, penalty=OutputPenalty("trace"), tol=1e-5)
    full = learn_output_kernel(problem, 0.3, penalty=OutputPenalty(rank=4), tol=1e-9, max_iter=5000)
    assert trace.value == pytest.approx(full.value, rel=1e-8)
    assert full.gap <= 1e-7 * full.value
    one = learn_output_kernel(problem, 0.3, penalty=OutputPenalty(rank=1), tol=1e-9, max_iter=5000)
    assert one.value > trace.value
    assert one.gap >= one.value - trace.value


@pytest.mark.parametrize("name", ["trace", "schatten", "elastic", "cluster"])
def test_the_published_alternation_reaches_no_lower_objective(name, rng):
    """Levels from those of A^T K A: after many steps it is at best where we are."""
    K, Y = make_problem(rng, 30, 6)
    penalty = OutputPenalty(name)
    problem = reduce_problem(K, Y)
    alpha = 0.1 * alpha_unit(problem, penalty=penalty)
    settings = {
        "schatten": {"exponent": 4 / 3},
        "elastic": {"l1_ratio": 0.5},
        "cluster": {"level_bounds": (0.1, 10.0)},
    }.get(name, {})
    result = learn_output_kernel(problem, alpha, penalty=penalty, max_iter=5000)
    if name == "cluster":
        # Clusters of what is left of the outputs without their mean.
        H = np.linalg.qr(np.eye(6) - 1 / 6)[0][:, :5]
        built = penalty.build(6, 5)
        inner = reference.kernel_ridge_alternation(
            K, Y @ H, alpha, lambda s: built.level_best(s[None])[0], 300
        )
        L = H @ inner @ H.T + 1 / 6
    else:
        built = penalty.build(6, 6)
        L = reference.kernel_ridge_alternation(
            K, Y, alpha, lambda s: built.level_best(s[None])[0], 300
        )
    value, gap = reference.output_kernel_gap(K, Y, L, alpha, name, **settings)
    assert result.value <= value + 1e-6 * value
    assert value - result.value <= gap + 1e-9 * value


def test_kernel_ridge_is_a_choice_of_every_constraint(rng):
    """The objective is at most that of L = I."""
    K, Y = make_problem(rng, 20, 5)
    problem = reduce_problem(K, Y)
    identity = fixed_output_kernel(problem, 0.5, np.eye(5))
    assert (identity.reason, identity.gap) == ("fixed", 0.0)
    assert identity.value == pytest.approx(
        reference.ridge(np.kron(K, np.eye(5)), Y.reshape(-1), 0.5)[1]
    )
    for name, _, given_settings in CASES:
        penalty = OutputPenalty(name, True, **given_settings)
        result = learn_output_kernel(problem, 0.5, penalty=penalty)
        assert result.value <= identity.value * (1 + 1e-9)


def test_clusters_that_are_planted(rng):
    """Two groups of outputs, each the same function: one level is high, and it tells the groups apart."""
    X = rng.normal(size=(60, 3))
    group = np.repeat([1.0, -1.0], 5)
    Y = np.outer(np.sin(2 * X[:, 0]), group) + X[:, [1]] + 0.1 * rng.normal(size=(60, 10))
    L = learn_output_kernel(
        reduce_problem(X @ X.T, Y), 1.0, penalty=OutputPenalty("cluster", level_bounds=(0.05, 8.0))
    ).L
    levels, V = np.linalg.eigh(L)
    assert abs(V[:, -1] @ group) / np.sqrt(10) > 0.99
    assert levels[-1] > 7.0
    assert levels[:-2].max() < 1.0
    np.testing.assert_allclose(L @ np.ones(10), 1.0, atol=1e-9)


def test_many_outputs_few_rows(rng):
    """p = 80, n = 6: only six directions are worked on, and the kernel in all outputs comes out."""
    K, Y = make_problem(rng, 6, 80)
    for name in ("trace", "elastic", "cluster"):
        result = learn_output_kernel(
            reduce_problem(K, Y), 0.5, penalty=OutputPenalty(name, constraint=True)
        )
        assert result.converged
        assert np.abs(K @ result.C @ result.L + 0.5 * result.C - Y).max() < 1e-8


@pytest.mark.parametrize("k", [1, 2, 3])
def test_dual_coordinate_ascent_reaches_no_lower_objective(k, rng):
    """The published solver of the entrywise penalty ends where ours does, from the other side too."""
    K, Y = make_problem(rng, 15, 4)
    exponent = 2 * k / (2 * k - 1)
    penalty, settings = OutputPenalty("entrywise", exponent=exponent), {"exponent": exponent}
    problem = reduce_problem(K, Y)
    alpha = 0.3 * alpha_unit(problem, penalty=penalty)
    ours = learn_output_kernel(problem, alpha, penalty=penalty, tol=1e-5, max_iter=5000)
    value, excess = np.inf, []
    C = None
    for _ in range(3):
        C, L = reference.coordinate_ascent(K, Y, alpha, k, 10, rng, start=C)
        value = reference.output_kernel_objective(K, Y, L, alpha, "entrywise", **settings)
        excess.append(value / ours.value - 1)
        assert value >= ours.value * (1 - 1e-9)
        bound = reference.output_kernel_bound(K, Y, C, alpha, "entrywise", **settings)
        assert bound <= ours.value * (1 + 1e-9)
    assert excess[-1] <= 1e-4
    assert excess[-1] <= excess[0]
