import numpy as np
import pytest

from entangled_kernels.convex import Cluster, Elastic, Entrywise, Schatten
from entangled_kernels.output_kernel import PENALTIES, OutputPenalty, graph_output_kernel


def test_the_right_penalty_is_built():
    assert OutputPenalty().build(4, 3) == Schatten(2.0)
    assert OutputPenalty("trace", constraint=True).build(4, 3) == Schatten(1.0, 4.0)
    ball = OutputPenalty("schatten", constraint=True, exponent=1.5).build(8, 3)
    assert (ball.exponent, ball.radius) == (1.5, pytest.approx(4.0))
    assert OutputPenalty("elastic", l1_ratio=0.2).build(4, 3) == Elastic(0.2)
    assert OutputPenalty("entrywise", exponent=6 / 5).build(4, 4) == Entrywise(3)
    # Of six directions without the mean two are not learned on, and stay at the lower bound.
    assert OutputPenalty("cluster", level_bounds=(0.5, 2.0)).build(7, 4) == Cluster(0.5, 2.0, 5.0)


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


def test_traits():
    assert OutputPenalty().is_plain
    assert not OutputPenalty(constraint=True).is_plain
    assert OutputPenalty("cluster").is_ball
    assert [OutputPenalty(name).power for name in ("trace", "frobenius", "elastic")] == [1.0, 2.0, 2.0]


class TestGraph:
    def test_it_is_the_kernel_of_the_graph_penalty(self, rng):
        """f^T (scaled L)^-1 f is the norm plus squared differences along links."""
        A = np.abs(rng.normal(size=(4, 4)))
        A = A + A.T
        np.fill_diagonal(A, 0.0)
        L = graph_output_kernel(A, 0.7)
        assert np.trace(L) == pytest.approx(4.0)
        f = rng.normal(size=4)
        penalty = f @ f + 0.7 * sum(A[i, j] * (f[i] - f[j]) ** 2 / 2 for i in range(4) for j in range(4))
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
    def test_bad_graphs(self, adjacency, message):
        with pytest.raises(ValueError, match=message):
            graph_output_kernel(adjacency)
        with pytest.raises(ValueError, match="strength must be a number of at least 0, got -1"):
            graph_output_kernel(np.eye(2), -1)
