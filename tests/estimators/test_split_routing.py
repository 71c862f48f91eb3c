import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, cross_validate

from entangled_kernels import EntangledKernelRidgeCV, OutputKernelRidgeCV

SEARCHES = [
    EntangledKernelRidgeCV(None, cv=GroupKFold(3), alphas=np.logspace(-6, 4, 6), random_state=0),
    OutputKernelRidgeCV(cv=GroupKFold(3)),
]


@pytest.fixture
def rows(make_rows):
    X, Y = make_rows(40, 3, 2)
    return X, Y, np.repeat(np.arange(10), 4)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_nested_folds_of_groups_need_no_request(rows, search, monkeypatch):
    X, Y, groups = rows
    seen = []
    split = GroupKFold.split

    def watch(self, X, y=None, groups=None):
        seen.append(len(groups))
        return split(self, X, y, groups)

    monkeypatch.setattr(GroupKFold, "split", watch)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(search, X, Y, cv=GroupKFold(2), params={"groups": groups}, error_score="raise")
    # The outer folds, and those of the search inside of each.
    assert seen == [40, 20, 20]
    assert np.isfinite(found["test_score"]).all()


def test_weights_are_asked_for_as_of_any_estimator(rows):
    X, Y, groups = rows
    params = {"groups": groups, "sample_weight": np.ones(40)}
    with sklearn.config_context(enable_metadata_routing=True):
        for model in (SEARCHES[0], Ridge()):
            with pytest.raises((UnsetMetadataPassedError, ValueError), match="sample_weight"):
                cross_validate(model, X, Y, cv=GroupKFold(2), params=params, error_score="raise")
