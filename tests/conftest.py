"""Small problems that the tests share."""

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler


@pytest.fixture
def rng():
    return np.random.default_rng(20210112)


@pytest.fixture
def make_rows(rng):
    """Correlated features with an offset, and targets that partly follow them."""

    def make(n, m, p, noise=1.0, offset=1.0):
        Phi = rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) / np.sqrt(m) + offset
        Y = (
            Phi @ rng.normal(size=(m, p))
            + noise * rng.normal(size=(n, p))
            + offset * rng.normal(size=p)
        )
        return Phi, Y

    return make


@pytest.fixture
def watched_features():
    """Thirty random features, and a list of how many rows were mapped at once."""
    seen = []

    class Watched(RBFSampler):
        def transform(self, X):
            seen.append(len(X))
            return super().transform(X)

    return Watched(n_components=30, random_state=0), seen
