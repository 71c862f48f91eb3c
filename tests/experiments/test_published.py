"""The published algorithm from fold moments against dense systems and brute-force refitting."""

from itertools import product

import numpy as np
import pytest

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.experiments.methods import LAMBDAS, fit_published, shuffled_folds


def dense_fit(X, Y, step, shrinkage, prediction, alpha):
    """Predictor of the kernel of trace one by solving the whole block system."""
    (n, p), m = Y.shape, X.shape[1]
    model = EntangledKernelRidge(
        solver="ascent",
        alignment_mix=0.5,
        shrinkage=0.0,
        fit_intercept=False,
        solver_params={"max_iter": step},
    ).fit(X, Y)
    kraus = np.sqrt(1.0 - shrinkage) * model.kraus_ / np.linalg.norm(model.kraus_)

    def gram(A, B):
        if prediction == "partial_trace":
            k = np.einsum("rof,af,rog,bg->ab", kraus, A, kraus, B, optimize=True)
            return np.kron(k + shrinkage / m * A @ B.T, np.eye(p))
        G = np.einsum("rof,af,rqg,bg->aobq", kraus, A, kraus, B, optimize=True)
        return G.reshape(len(A) * p, len(B) * p) + shrinkage / (m * p) * np.kron(A @ B.T, np.eye(p))

    dual = np.linalg.solve(gram(X, X) + alpha * np.eye(n * p), Y.reshape(-1))
    return lambda Z: (gram(Z, X) @ dual).reshape(len(Z), p)


@pytest.mark.parametrize("prediction", ["entangled", "partial_trace"])
def test_selection_and_predictions_are_those_of_brute_force(make_rows, prediction):
    X, Y = make_rows(14, 3, 2)
    folds = shuffled_folds(14, 0)
    models = fit_published(X, Y, folds, (prediction,), n_steps=4, early=True, fixed=1.0)
    model, fixed = models[prediction, "chosen"], models[prediction, "fixed"]
    variance = np.var(Y, axis=0)

    def held_out(step, shrinkage, alpha):
        errors = []
        for train, test in folds:
            predict = dense_fit(X[train], Y[train], step, shrinkage, prediction, alpha)
            errors.append(np.mean((Y[test] - predict(X[test])) ** 2 / variance))
        return np.mean(errors)

    grid = list(product((1, 4), (0.25, 0.75), LAMBDAS[::4]))
    chosen = tuple(model.candidate)
    best = min(held_out(*candidate) for candidate in grid)
    assert held_out(*chosen, model.alpha) <= best * (1 + 1e-6)
    predict = dense_fit(X, Y, *chosen, prediction, model.alpha)
    np.testing.assert_allclose(model.predict(X[:5]), predict(X[:5]), rtol=1e-5, atol=1e-7)
    predict = dense_fit(X, Y, *chosen, prediction, 1.0)
    np.testing.assert_allclose(fixed.predict(X[:5]), predict(X[:5]), rtol=1e-5, atol=1e-7)


def test_rank_and_start(make_rows):
    X, Y = make_rows(12, 3, 2)
    folds = shuffled_folds(12, 0)
    first, again, other = (
        fit_published(X, Y, folds, seed=seed, n_steps=3, rank=0.5) for seed in (1, 1, 2)
    )
    key = ("entangled", "chosen")
    assert set(first) == {key, ("partial_trace", "chosen")}
    np.testing.assert_array_equal(first[key].coef, again[key].coef)
    assert not np.allclose(first[key].coef, other[key].coef)
    assert first[key].candidate.n_steps == 3
