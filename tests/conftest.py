"""Small problems that the tests share."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20210112)


@pytest.fixture
def make_rows(rng):
    """Correlated features with an offset, and targets that partly follow them."""

    def make(n, m, p, noise=1.0, offset=1.0):
        Phi = rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) / np.sqrt(m) + offset
        Y = Phi @ rng.normal(size=(m, p)) + noise * rng.normal(size=(n, p)) + offset * rng.normal(size=p)
        return Phi, Y

    return make
