import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV, EvidenceFeatures

GRID = {
    "alphas": np.logspace(-2, 3, 6),
    "random_state": 0,
    "param_grid": {"shrinkage": (0.0, 0.5), "target_alpha": (0.1,)},
}


@pytest.mark.parametrize("selection", ["best", "average"])
def test_the_best_estimator_is_the_candidate_fitted_on_all_rows(make_rows, selection):
    X, Y = make_rows(40, 3, 2)
    search = EntangledKernelRidgeCV(StandardScaler(), selection=selection, cv=3, **GRID).fit(X, Y)
    own = EntangledKernelRidge(StandardScaler(), **search.best_params_, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(search.best_estimator_.coef_, own.coef_)
    np.testing.assert_array_equal(search.best_estimator_.predict(X), own.predict(X))
    # It can be cloned. A search keeps no moments, so that a stream starts anew.
    best = search.best_estimator_
    assert clone(best).get_params()["alpha"] == search.best_params_["alpha"]
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        best.partial_fit(X[:20], Y[:20])
    anew = clone(best).partial_fit(X[:20], Y[:20])
    np.testing.assert_array_equal(best.predict(X), anew.predict(X))


def test_the_search_of_a_pipeline_is_that_of_its_last_step(make_rows):
    """Noise and warm starts are found behind the steps before it."""
    X, Y = make_rows(25, 3, 2)
    plain = EntangledKernelRidgeCV(EvidenceFeatures(random_state=0), cv=3, **GRID).fit(X, Y)
    piped = make_pipeline(StandardScaler(), EvidenceFeatures(random_state=0))
    search = EntangledKernelRidgeCV(piped, cv=3, **GRID).fit(X, Y)
    np.testing.assert_allclose(search.predict(X), plain.predict(X), rtol=1e-4)


@pytest.mark.parametrize("constant", [0.1, 2.5])
@pytest.mark.parametrize("estimator", [EntangledKernelRidge, EntangledKernelRidgeCV])
def test_a_constant_target_leaves_the_intervals_of_others_alone(make_rows, estimator, constant):
    X, Y = make_rows(32, 4, 3)
    settings = (
        {"shrinkage": 1.0}
        if estimator is EntangledKernelRidge
        else {"cv": 4, "param_grid": {"shrinkage": (1.0,)}}
    )
    wider = np.column_stack([Y, np.full(32, constant)])
    expected, found = (
        estimator(None, **settings, random_state=0).fit(X, own) for own in (Y, wider)
    )
    np.testing.assert_allclose(
        found.residual_covariance_[:3, :3], expected.residual_covariance_, rtol=1e-6
    )
    for own, other in zip(found.predict_interval(X), expected.predict_interval(X), strict=True):
        np.testing.assert_allclose(own[:, :3], other, rtol=1e-6)
        np.testing.assert_allclose(own[:, 3], constant, rtol=1e-12)


def test_a_search_projects_with_its_best_entangled_candidate(make_rows):
    X, Y = make_rows(24, 3, 2)
    model = EntangledKernelRidgeCV(StandardScaler(), random_state=0).fit(X, Y)
    results = model.cv_results_
    entangled = (results["param_shrinkage"] < 1.0) & (results["param_prediction"] == "entangled")
    best = np.flatnonzero(entangled)[results["mean_test_score"][entangled].argmin()]
    found = model.entangled_estimator_
    assert found.prediction == "entangled"
    assert found.shrinkage < 1.0
    # Of candidates that are as good to four digits, the simplest is taken.
    own = [results[f"param_{name}"] == getattr(found, name) for name in ("alpha", "shrinkage")]
    assert (
        results["mean_test_score"][np.all(own, axis=0) & entangled].min()
        <= 1.001 * results["mean_test_score"][best]
    )
    np.testing.assert_array_equal(model.kraus_, found.kraus_)
    np.testing.assert_array_equal(model.project(X), found.project(X))
    np.testing.assert_array_equal(model.kernel_.kraus, found.kraus_)


def test_a_search_without_an_entangled_candidate_says_so(make_rows):
    X, Y = make_rows(24, 3, 2)
    model = EntangledKernelRidgeCV(StandardScaler(), param_grid={"shrinkage": (1.0,)}).fit(X, Y)
    with pytest.raises(AttributeError, match="no candidate was entangled"):
        _ = model.kernel_
    with pytest.raises(ValueError, match="no candidate was entangled"):
        model.project(X)


def test_kernel_ridge_beside_the_model_is_that_of_a_search_of_its_own(make_rows):
    X, Y = make_rows(30, 3, 2)
    maps = [StandardScaler(), EvidenceFeatures(random_state=0)]
    model = EntangledKernelRidgeCV(maps, random_state=0).fit(X, Y)
    plain = EntangledKernelRidgeCV(maps, random_state=0, param_grid={"shrinkage": (1.0,)}).fit(X, Y)
    assert model.kernel_ridge_score_ == pytest.approx(plain.cv_score_, rel=1e-9)
    np.testing.assert_allclose(model.kernel_ridge_target_score_, plain.cv_target_score_, rtol=1e-9)
    assert plain.kernel_ridge_score_ == pytest.approx(plain.cv_score_, rel=1e-12)
    # Of the residuals that deviations are calibrated on.
    residuals = model.model_.residuals
    squares = np.average(residuals.values**2, axis=0, weights=residuals.weight)
    np.testing.assert_allclose(model.cv_rmse_**2, squares)
    np.testing.assert_allclose(model.cv_target_score_, squares / Y.var(axis=0))
    assert model.cv_score_ == pytest.approx(np.mean(model.cv_target_score_))


def test_held_out_intervals_hold_about_as_many_rows_as_they_say(rng):
    X = rng.normal(size=(120, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(120, 2))
    for transform, targets in ((None, Y), ("log", np.exp(Y))):
        model = EntangledKernelRidgeCV(None, cv=4, target_transform=transform, **GRID).fit(
            X, targets
        )
        found = model.held_out_predictions(0.9)
        np.testing.assert_allclose(found.measured, targets)
        inside = (found.lower <= targets) & (found.upper >= targets)
        assert 0.85 <= inside.mean() <= 0.97
        if transform is None:
            rmse = np.sqrt(np.mean((found.measured - found.predicted) ** 2, axis=0))
            # Rows were held out several times, so the mean of their predictions errs somewhat less.
            np.testing.assert_allclose(rmse, model.cv_rmse_, rtol=0.05)
