import numpy as np
import pytest

from entangled_kernels.output_kernel import (
    OutputPenalty,
    alpha_unit,
    fixed_output_kernel,
    learn_output_kernel,
    learn_penalised,
    output_kernel_path,
    reduce_problem,
)
from output_kernel.problems import make_problem

from reference import convex as reference
from reference import output_kernel as plain

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
    ("name", "constraint", "settings"), CASES, ids=[f"{c[0]}-{'ball' if c[1] else 'penalty'}" for c in CASES]
)


def random_problem(rng):
    n, p = rng.integers(3, 61, size=2)
    K, Y = make_problem(rng, n, p, columns=rng.choice([None, 2]), rank=rng.integers(1, 4))
    return K * 10.0 ** rng.uniform(-2, 2), Y * 10.0 ** rng.uniform(-2, 2)


@EACH
def test_fifty_random_problems(name, constraint, settings, rng):
    """Gap at most 1e-6 of the objective, from the dense definition; L psd and within the constraint."""
    penalty = OutputPenalty(name, constraint, **settings)
    for _ in range(50):
        K, Y = random_problem(rng)
        problem = reduce_problem(K, Y)
        alpha = alpha_unit(problem, penalty=penalty) * 10.0 ** rng.uniform(-4, 2)
        result = learn_penalised(problem, alpha, penalty, max_iter=5000)
        assert result.converged, result
        np.testing.assert_array_equal(result.L, result.L.T)
        levels = np.linalg.eigvalsh(result.L)
        assert levels[0] >= -1e-12 * levels[-1]
        value = reference.output_kernel_objective(K, Y, result.L, alpha, name, constraint, **settings)
        bound = reference.output_kernel_bound(K, Y, result.witness, alpha, name, constraint, **settings)
        assert result.value == pytest.approx(value, rel=1e-7)
        assert -1e-8 * value <= value - bound <= 1.01e-6 * value
        assert result.gap == pytest.approx(value - bound, rel=1e-2, abs=1e-7 * value)
        if constraint and name not in ("elastic", "cluster"):
            p = len(result.L)
            limit = reference.norm(name, np.eye(p), **settings)
            assert reference.norm(name, result.L, **settings) <= limit * (1 + 1e-9)


@EACH
def test_the_path_ends_where_cold_starts_do(name, constraint, settings, rng):
    K, Y = make_problem(rng, 25, 6)
    problem, penalty = reduce_problem(K, Y, centred=True), OutputPenalty(name, constraint, **settings)
    alphas = alpha_unit(problem, penalty=penalty) * np.logspace(2, -3, 6)
    path = output_kernel_path(problem, alphas, penalty=penalty, max_iter=5000)
    for alpha, warm in zip(alphas, path, strict=True):
        cold = learn_output_kernel(problem, alpha, penalty=penalty, max_iter=5000)
        assert warm.converged
        assert abs(warm.value - cold.value) <= 2e-6 * cold.value


def test_frobenius_is_the_newton_solver(rng):
    for alpha in (0.01, 1.0, 30.0):
        K, Y = make_problem(rng, 20, 5)
        problem = reduce_problem(K, Y)
        newton = learn_output_kernel(problem, alpha, tol=1e-9)
        for penalty in (OutputPenalty("schatten", exponent=2.0), OutputPenalty("entrywise", exponent=2.0)):
            result = learn_penalised(problem, alpha, penalty, tol=1e-6, max_iter=5000)
            assert result.value == pytest.approx(newton.value, rel=1e-10)
            np.testing.assert_allclose(result.L, newton.L, atol=1e-4 * np.abs(newton.L).max())


def test_frobenius_is_as_it_was(rng):
    """The default goes the way it always went, and its certificate is the bound of its own notes."""
    K, Y = make_problem(rng, 20, 5)
    problem = reduce_problem(K, Y)
    result = learn_output_kernel(problem, 0.3)
    S = result.C.T @ K @ result.C
    assert result.gap == pytest.approx(np.sum((result.L - S / 2) ** 2) / 2, rel=1e-6)
    slow = plain.alternate(K, Y, 0.3, 400)
    exact = learn_output_kernel(problem, 0.3, tol=1e-12)
    assert exact.value == pytest.approx(plain.reduced_objective(K, Y, slow, 0.3), rel=1e-10)


def test_the_trace_is_the_full_rank(rng):
    """The rank path with rank to spare, and its gap bounds what a smaller rank loses."""
    K, Y = make_problem(rng, 15, 4)
    problem = reduce_problem(K, Y)
    trace = learn_penalised(problem, 0.3, OutputPenalty("trace"), tol=1e-5)
    full = learn_output_kernel(problem, 0.3, rank=4, tol=1e-9, max_iter=5000)
    assert trace.value == pytest.approx(full.value, rel=1e-8)
    assert full.gap <= 1e-7 * full.value
    one = learn_output_kernel(problem, 0.3, rank=1, tol=1e-9, max_iter=5000)
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
    result = learn_penalised(problem, alpha, penalty, max_iter=5000)
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
        L = reference.kernel_ridge_alternation(K, Y, alpha, lambda s: built.level_best(s[None])[0], 300)
    value, gap = reference.output_kernel_gap(K, Y, L, alpha, name, **settings)
    assert result.value <= value + 1e-6 * value
    assert value - result.value <= gap + 1e-9 * value


def test_kernel_ridge_is_a_choice_of_every_constraint(rng):
    """The objective is at most that of L = I."""
    K, Y = make_problem(rng, 20, 5)
    problem = reduce_problem(K, Y)
    identity = fixed_output_kernel(problem, 0.5, np.eye(5))
    assert (identity.reason, identity.gap) == ("fixed", 0.0)
    assert identity.value == pytest.approx(reference.ridge(np.kron(K, np.eye(5)), Y.reshape(-1), 0.5)[1])
    for name, _, settings in CASES:
        result = learn_penalised(problem, 0.5, OutputPenalty(name, True, **settings))
        assert result.value <= identity.value * (1 + 1e-9)


def test_clusters_that_are_planted(rng):
    """Two groups of outputs, each the same function: one level is high, and it tells the groups apart."""
    X = rng.normal(size=(60, 3))
    group = np.repeat([1.0, -1.0], 5)
    Y = np.outer(np.sin(2 * X[:, 0]), group) + X[:, [1]] + 0.1 * rng.normal(size=(60, 10))
    L = learn_penalised(reduce_problem(X @ X.T, Y), 1.0, OutputPenalty("cluster", level_bounds=(0.05, 8.0))).L
    levels, V = np.linalg.eigh(L)
    assert abs(V[:, -1] @ group) / np.sqrt(10) > 0.99
    assert levels[-1] > 7.0
    assert levels[:-2].max() < 1.0
    np.testing.assert_allclose(L @ np.ones(10), 1.0, atol=1e-9)


@pytest.mark.parametrize("name", ["trace", "cluster", "entrywise"])
def test_nothing_to_learn(name):
    K, Y = np.diag([1.0, 1.0, 0.0]), np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    result = learn_penalised(reduce_problem(K, Y), 0.5, OutputPenalty(name))
    np.testing.assert_allclose(result.C, Y / 0.5)
    assert result.value == pytest.approx(np.sum(Y**2) / 1.0)
    one = learn_penalised(reduce_problem(np.eye(3), Y[:, :1]), 0.5, OutputPenalty(name))
    assert one.L.shape == (1, 1)


def test_many_outputs_few_rows(rng):
    """p = 80, n = 6: only six directions are worked on, and the kernel in all outputs comes out."""
    K, Y = make_problem(rng, 6, 80)
    for name in ("trace", "elastic", "cluster"):
        result = learn_penalised(reduce_problem(K, Y), 0.5, OutputPenalty(name, constraint=True))
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
    ours = learn_penalised(problem, alpha, penalty, tol=1e-5, max_iter=5000)
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
