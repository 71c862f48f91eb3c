import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV

GRID = {
    "alphas": [1e-4, 1.0, 10.0, 1e6],
    "random_state": 0,
    "param_grid": {"shrinkage": (0.5,), "target_alpha": (0.1,)},
}


def test_attributes_show_parts_of_the_model(make_rows):
    X, Y = make_rows(20, 3, 2)
    model = EntangledKernelRidge()
    with pytest.raises(NotFittedError, match=r"'EntangledKernelRidge' object has no attribute 'coef_' yet$"):
        model.coef_  # noqa: B018
    model.fit(X, Y)
    assert model.solver_ == "closed-form"
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((2, 3))


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


def test_wide_tables_keep_no_moments(make_rows):
    X, Y = make_rows(10, 20, 2)
    assert not hasattr(EntangledKernelRidge().fit(X, Y), "n_samples_seen_")
    with pytest.raises(ValueError, match="at least 2 rows of positive sample_weight"):
        EntangledKernelRidge().fit(X, Y, np.eye(10)[0])
