"""Bounds lie above the Monte Carlo complexity, and have the values computed by hand."""

import numpy as np
import pytest

from entangled_kernels.estimators import OperatorValuedKernelRidge
from entangled_kernels.kernels import SeparableKernel
from entangled_kernels.linalg import choi_from_kraus
from entangled_kernels.theory import generalization_bound, rademacher_bound, rkhs_norm
from kernels.registry import KERNELS, D, P

rng = np.random.default_rng(2)
X, Y = rng.normal(size=(20, D)), rng.normal(size=(20, P))
NAMES = [
    "separable rbf",
    "separable linear",
    "kraus",
    "entangled",
    "sum of separable",
    "transformable maps",
]


def rademacher_complexity(G, n, beta, draws=4000):
    """Monte Carlo of E sup over the ball: the supremum is attained along sum_i K(., x_i) sigma_i."""
    signs = rng.choice([-1.0, 1.0], size=(draws, len(G)))
    return beta / n * np.sqrt(np.einsum("ki,ij,kj->k", signs, G, signs, optimize=True)).mean()


@pytest.mark.parametrize("name", NAMES)
def test_bound_of_an_estimator_lies_above_the_complexity(name):
    model = OperatorValuedKernelRidge(KERNELS[name]).fit(X, Y)
    exact = rademacher_complexity(KERNELS[name](X).to_dense(), 20, rkhs_norm(model))
    bound = rademacher_bound(model)
    assert exact <= bound <= 2 * exact


def test_bound_of_the_paper_lies_above_the_complexity_at_unit_norm():
    for _ in range(20):
        kraus = rng.normal(size=(rng.integers(1, 6), P, D))
        Q_norm = np.linalg.norm(kraus)
        D_unit = choi_from_kraus(kraus / Q_norm)
        lift = np.kron(X, np.eye(P))
        exact = rademacher_complexity(lift @ D_unit @ lift.T, 20, beta=1.7, draws=500)
        assert exact <= rademacher_bound(X @ X.T, n_outputs=P, beta=1.7)


def test_values_by_hand():
    assert rademacher_bound(np.full(50, 3.0), 2, beta=4.0) == pytest.approx(
        4.0 * np.sqrt(50 * 3 * 2) / 50
    )
    bound = generalization_bound(
        np.full(50, 3.0), 0.25, 2, beta=4.0, loss_bound=0.5, delta=0.1, kappa=5.0
    )
    assert bound.complexity == pytest.approx(4 * np.sqrt(2) * 0.5 * np.sqrt(16 * 5 * 2 / 50))
    assert bound.confidence == pytest.approx(3 * 0.5 * np.sqrt(np.log(20) / 100))
    assert bound.total == pytest.approx(0.25 + bound.complexity + bound.confidence)


def test_estimator_and_gram_matrix_agree_for_identity_outputs():
    model = OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(P))).fit(X, Y)
    gram = model.kernel_(X).gram
    assert rademacher_bound(model, beta=1.0) == pytest.approx(rademacher_bound(gram, P))
    ours, scalar = generalization_bound(model, 0.1, beta=1.0), generalization_bound(gram, 0.1, P)
    assert ours.total == pytest.approx(scalar.total)
    assert rademacher_bound(model, beta=1.0) == pytest.approx(
        rademacher_bound(model, beta=1.0, X=X)
    )


def test_norm_of_the_fitted_function():
    model = OperatorValuedKernelRidge(alpha=0.5).fit(X, Y)
    W = np.linalg.solve(X.T @ X + 0.5 * np.eye(D), X.T @ Y)
    assert rkhs_norm(model) == pytest.approx(np.linalg.norm(W))


def test_bounds_shrink_with_the_sample_and_grow_with_the_ball():
    diagonal = np.ones(400)
    assert rademacher_bound(diagonal, 3) == pytest.approx(rademacher_bound(diagonal[:100], 3) / 2)
    assert rademacher_bound(diagonal, 3, beta=2.0) == pytest.approx(
        2 * rademacher_bound(diagonal, 3)
    )
    loose, tight = (generalization_bound(diagonal, 0.0, 3, delta=delta) for delta in (0.01, 0.1))
    assert loose.total > tight.total


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="n_outputs is needed"):
        rademacher_bound(np.eye(3))
    with pytest.raises(ValueError, match="source must be a fitted estimator"):
        rademacher_bound(np.ones((2, 3)), 2)
    with pytest.raises(ValueError, match="beta must be a nonnegative norm"):
        rademacher_bound(np.eye(3), 2, beta=-1.0)
    with pytest.raises(ValueError, match="delta must lie"):
        generalization_bound(np.eye(3), 0.1, 2, delta=1.0)
    with pytest.raises(ValueError, match="loss_bound must be positive"):
        generalization_bound(np.eye(3), 0.1, 2, loss_bound=0.0)
    with pytest.raises(ValueError, match=r"kappa=0.5 is below the largest value on the sample, 1"):
        generalization_bound(np.eye(3), 0.1, 2, kappa=0.5)

    class Forgetful:
        kernel_ = KERNELS["kraus"]

    with pytest.raises(ValueError, match="X is needed: Forgetful"):
        rademacher_bound(Forgetful())
    with pytest.raises(ValueError, match="pass beta"):
        rademacher_bound(Forgetful(), X=X)
    assert rademacher_bound(Forgetful(), beta=1.0, X=X) > 0
    model = OperatorValuedKernelRidge(KERNELS["indefinite separable"], indefinite="krein").fit(X, Y)
    model.dual_coef_ = np.tile([0.0, 1.0, 0.0], (20, 1))
    with pytest.raises(ValueError, match="indefinite"):
        rkhs_norm(model)
