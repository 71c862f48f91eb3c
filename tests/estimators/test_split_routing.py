import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold, cross_validate

from entangled_kernels import EntangledKernelRidgeCV, OutputKernelRidgeCV

ALPHAS = np.logspace(-6, 4, 6)
SEARCHES = [
    EntangledKernelRidgeCV(None, cv=GroupKFold(3), alphas=ALPHAS, random_state=0),
    OutputKernelRidgeCV(cv=GroupKFold(3)),
]
NUMBERS = [
    EntangledKernelRidgeCV(None, cv=3, alphas=ALPHAS, random_state=0),
    OutputKernelRidgeCV(cv=3),
]


@pytest.fixture
def rows(make_rows):
    X, Y = make_rows(40, 3, 2)
    return X, Y, np.repeat(np.arange(10), 4)


def by_hand(search, X, Y, groups):
    """Scores of a nested cross-validation with groups."""
    scores = []
    for train, test in GroupKFold(2).split(X, Y, groups):
        model = clone(search).fit(X[train], Y[train], groups=groups[train])
        scores.append(model.score(X[test], Y[test]))
    return scores


@pytest.mark.parametrize("routing", [True, False])
@pytest.mark.parametrize(
    "search", SEARCHES + NUMBERS, ids=lambda search: f"{type(search).__name__} {search.cv}"
)
def test_nested_scores_are_those_by_hand(rows, search, routing):
    X, Y, groups = rows
    with sklearn.config_context(enable_metadata_routing=routing):
        # Without routing the outer folds must be told apart from what is given to fit.
        outer = {} if routing else {"groups": groups}
        found = cross_validate(
            search, X, Y, cv=GroupKFold(2), params={"groups": groups}, error_score="raise", **outer
        )
    np.testing.assert_allclose(found["test_score"], by_hand(search, X, Y, groups))


def test_splitters_without_groups_get_none(rows):
    X, Y, groups = rows
    search = clone(NUMBERS[0]).set_params(cv=KFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            search, X, Y, cv=GroupKFold(2), params={"groups": groups}, error_score="raise"
        )
    assert np.isfinite(found["test_score"]).all()


def test_weights_are_asked_for_as_of_any_estimator(rows):
    X, Y, groups = rows
    params = {"groups": groups, "sample_weight": np.ones(40)}
    with sklearn.config_context(enable_metadata_routing=True):
        for model in (SEARCHES[0], Ridge()):
            with pytest.raises((UnsetMetadataPassedError, ValueError), match="sample_weight"):
                cross_validate(model, X, Y, cv=GroupKFold(2), params=params, error_score="raise")
