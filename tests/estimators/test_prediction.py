import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV

GRID = {
    "alphas": [1e-4, 1.0, 10.0, 1e6],
    "random_state": 0,
    "param_grid": {"shrinkage": (0.5,), "target_alpha": (0.1,)},
}


def test_attributes_show_parts_of_the_fit(make_rows):
    X, Y = make_rows(20, 3, 2)
    model = EntangledKernelRidge()
    with pytest.raises(NotFittedError, match=r"'EntangledKernelRidge' object has no attribute 'coef_' yet$"):
        model.coef_  # noqa: B018
    model.fit(X, Y)
    assert model.coef_ is model._fit.linear.coef
    assert model.solver_ == "closed-form"
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((2, 3))
    assert EntangledKernelRidge.coef_.__doc__ == "Coefficients (p, m) of the features."


@pytest.mark.parametrize("model", [EntangledKernelRidge(), EntangledKernelRidgeCV(None, **GRID)])
def test_one_of_deviation_and_covariance(make_rows, model):
    X, Y = make_rows(20, 3, 2)
    model.fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    same, cov = model.predict(X, return_cov=True)
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(std, np.sqrt(np.einsum("noo->no", cov)))
    with pytest.raises(ValueError, match="return_std and return_cov cannot both be true"):
        model.predict(X, return_std=True, return_cov=True)


def test_blocks_of_rows_do_not_change_predictions(make_rows, watched_features, monkeypatch):
    X, Y = make_rows(50, 3, 2)
    features, seen = watched_features
    model = EntangledKernelRidge(features).fit(X, Y)
    mean, cov = model.predict(X, return_cov=True)
    monkeypatch.setattr("entangled_kernels.estimators.novelty.FIRST_BLOCK", 8)
    seen.clear()
    with config_context(working_memory=1e-6):
        in_blocks = model.predict(X, return_cov=True)
    assert max(seen) == 8
    np.testing.assert_allclose(in_blocks[0], mean, rtol=1e-12)
    np.testing.assert_allclose(in_blocks[1], cov, rtol=1e-12)
