"""Penalties: values, conjugates, and where these are attained."""

import numpy as np
import pytest
from scipy.optimize import minimize

from convex.problems import (
    label,
    penalties,
    random_psd,
)
from entangled_kernels.convex import (
    PENALTIES,
    Cluster,
    Elastic,
    Entrywise,
    OutputPenalty,
    Schatten,
    graph_output_kernel,
)

from reference import convex as reference

K = 4
EACH = pytest.mark.parametrize("penalty", penalties(K), ids=label)


def feasible(penalty, L):
    """Whether a constraint is met, by the definition."""
    levels = np.linalg.eigvalsh(L)
    if isinstance(penalty, Cluster):
        inside = penalty.low - 1e-9 <= levels[0] and levels[-1] <= penalty.high + 1e-9
        return inside and levels.sum() <= penalty.budget + 1e-9
    if penalty.radius is None:
        return True
    if isinstance(penalty, Elastic):
        return reference.value("elastic", L, l1_ratio=penalty.l1_ratio) <= penalty.radius + 1e-9
    name = "entrywise" if isinstance(penalty, Entrywise) else "schatten"
    return reference.norm(name, L, penalty.exponent) <= penalty.radius + 1e-9


@EACH
def test_the_argmax_attains_the_conjugate_and_nothing_exceeds_it(penalty, rng):
    """Fenchel's inequality for random psd matrices, with equality at the argmax."""
    for scale in (1e-3, 0.05, 1.0, 30.0):
        S = scale * random_psd(rng, K)[None]
        S *= penalty.shrink(S) ** 2
        L = penalty.argmax(S)
        assert np.linalg.eigvalsh(L[0])[0] >= -1e-12
        assert feasible(penalty, L[0])
        best = penalty.conjugate(S)
        assert 0.5 * np.vdot(L, S) - penalty.value(L) == pytest.approx(best, rel=1e-9, abs=1e-12)
        for _ in range(30):
            other = random_psd(rng, K, rng.integers(1, K + 1)) * 10 ** rng.uniform(-2, 1)
            if isinstance(penalty, Cluster):
                levels, V = np.linalg.eigh(other)
                levels = np.clip(levels, penalty.low, penalty.high)
                room = (penalty.budget - penalty.low * K) / max(
                    np.sum(levels - penalty.low), 1e-300
                )
                other = (V * (penalty.low + min(1.0, room) * (levels - penalty.low))) @ V.T
            elif penalty.radius is not None:
                while not feasible(penalty, other):
                    other = other * 0.7
            bound = 0.5 * np.vdot(other, S[0]) - penalty.value(other[None])
            assert bound <= best + 1e-9 * max(1.0, abs(best))


@EACH
def test_the_value_is_the_definition(penalty, rng):
    L = random_psd(rng, K)
    if isinstance(penalty, Cluster) or penalty.radius is not None:
        assert penalty.value(L[None]) == 0.0
        return
    name = type(penalty).__name__.lower()
    settings = (
        {"l1_ratio": penalty.l1_ratio} if name == "elastic" else {"exponent": penalty.exponent}
    )
    assert penalty.value(L[None]) == pytest.approx(reference.value(name, L, **settings))


@pytest.mark.parametrize(
    "penalty",
    [Schatten(2.0), Schatten(4 / 3), Schatten(1.0), Elastic(0.4), Cluster(0.2, 3.0, 4.0)],
    ids=label,
)
def test_best_levels_are_least(penalty, rng):
    """sum squares / (2 levels) + P has its minimum there, by a search over logarithms of levels."""
    squares = rng.gamma(1.0, size=(1, K))
    best = penalty.level_best(squares)

    def objective(levels):
        return 0.5 * np.sum(squares / levels) + penalty.level_value(levels)

    if isinstance(penalty, Cluster):
        assert best.min() >= 0.2 - 1e-12
        assert best.max() <= 3.0 + 1e-12
        assert best.sum() == pytest.approx(4.0)
        for _ in range(200):
            other = best + 0.1 * rng.normal(size=(1, K))
            other = np.clip(other, 0.2, 3.0)
            if other.sum() <= 4.0:
                assert objective(other) >= objective(best) - 1e-12
        return
    found = minimize(lambda x: objective(np.exp(x)[None]), np.zeros(K), options={"gtol": 1e-8})
    assert objective(best) <= found.fun + 1e-12
    np.testing.assert_allclose(best[0], np.exp(found.x), rtol=1e-4)


@pytest.mark.parametrize(
    "penalty", [Schatten(1.5, radius=2.0), Elastic(0.3, radius=2.0)], ids=label
)
def test_levels_are_taken_to_the_boundary(penalty, rng):
    levels = rng.gamma(1.0, size=(1, K))
    onto = penalty.level_scale(levels) * levels
    slack = 1e-6 * np.diag(onto[0])
    assert feasible(penalty, np.diag(onto[0]) - slack)
    assert not feasible(penalty, np.diag(onto[0]) + slack)


def test_slopes_against_differences(rng):
    levels, step = rng.gamma(1.0, size=(1, K)) + 0.1, 1e-6
    for penalty in (Schatten(1.7), Elastic(0.3)):
        slope = [
            (penalty.level_value(levels + step * e) - penalty.level_value(levels - step * e))
            / (2 * step)
            for e in np.eye(K)[:, None]
        ]
        np.testing.assert_allclose(penalty.level_slope(levels)[0], slope, rtol=1e-7)


def test_a_stack_is_penalised_as_one_block_matrix(rng):
    """m matrices together are one block-diagonal matrix."""
    S = np.stack([random_psd(rng, 3) for _ in range(2)])
    whole = np.zeros((1, 6, 6))
    whole[0, :3, :3], whole[0, 3:, 3:] = S
    for penalty in (
        Schatten(1.5),
        Schatten(1.0, radius=2.0),
        Elastic(0.5, radius=1.0),
        Entrywise(2),
    ):
        assert penalty.conjugate(S) == pytest.approx(penalty.conjugate(whole))


def test_nothing_to_gain():
    """A zero S has a zero conjugate."""
    S = np.zeros((1, 3, 3))
    for penalty in (
        Schatten(1.0, radius=2.0),
        Schatten(2.0, radius=2.0),
        Elastic(0.5, 1.0),
        Entrywise(2, 1.0),
    ):
        assert penalty.conjugate(S) == 0.0
        assert not penalty.argmax(S).any()


@pytest.mark.parametrize("name", PENALTIES)
def test_the_identity_is_on_the_boundary_of_the_constraint(name):
    """So kernel ridge regression is among the choices."""
    built = OutputPenalty(name, constraint=True).build(5, 5)
    if isinstance(built, Cluster):
        assert built.low <= 1.0 <= built.high
        assert OutputPenalty(name).build(5, 4).budget == 4.0
    elif isinstance(built, Entrywise):
        size = np.sum(np.eye(5) ** built.exponent) ** (1 / built.exponent)
        assert size == pytest.approx(built.radius)
    else:
        assert built.level_scale(np.ones((1, 5))) == pytest.approx(1.0)


def test_a_graph_is_the_kernel_of_its_penalty(rng):
    """f^T (scaled L)^-1 f is the norm plus squared differences along links."""
    A = np.abs(rng.normal(size=(4, 4)))
    A = A + A.T
    np.fill_diagonal(A, 0.0)
    L = graph_output_kernel(A, 0.7)
    assert np.trace(L) == pytest.approx(4.0)
    f = rng.normal(size=4)
    penalty = f @ f + 0.7 * sum(
        A[i, j] * (f[i] - f[j]) ** 2 / 2 for i in range(4) for j in range(4)
    )
    unit = np.trace(np.linalg.inv(np.eye(4) + 0.7 * (np.diag(A.sum(0)) - A))) / 4
    assert f @ np.linalg.solve(unit * L, f) == pytest.approx(penalty)
    np.testing.assert_allclose(graph_output_kernel(A, 0.0), np.eye(4))


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        ([[0, 1]], r"square matrix over the outputs, got shape \(1, 2\)"),
        ([[0, -1], [-1, 0]], "finite weights of at least 0"),
        ([[0, 1], [2, 0]], "symmetric; use"),
    ],
)
def test_bad_graphs(adjacency, message):
    with pytest.raises(ValueError, match=message):
        graph_output_kernel(adjacency)
    with pytest.raises(ValueError, match="strength must be a number of at least 0, got -1"):
        graph_output_kernel(np.eye(2), -1)
