"""scikit-learn's estimator checks as a pytest mark."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks


def scikit_learn_checks(estimators):
    """`parametrize_with_checks`, with its generator made a list, which is what pytest asks for."""
    mark = parametrize_with_checks(estimators)
    names, checks = mark.args
    return pytest.mark.parametrize(names, list(checks), **mark.kwargs)
