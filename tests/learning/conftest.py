"""Learning problems, and the largest alignment of a problem with an intercept."""

import numpy as np
import pytest

from entangled_kernels.learning import Moments, reduce_moments

from reference import dense


@pytest.fixture
def make_problem(make_rows):
    def make(n=20, m=4, p=3, centred=True, noise=1.0):
        Phi, Y = make_rows(n, m, p, noise=noise)
        return reduce_moments(Moments.from_arrays(Phi, Y), centred=centred)

    return make


@pytest.fixture
def make_problem_and_optimum(make_rows):
    """A problem with an intercept, and the largest alignment there is, at the least-squares fit W."""

    def make(n, m, p, mix):
        Phi, Y = make_rows(n, m, p)
        W = np.linalg.lstsq(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].reshape(-1)
        a1, a2 = dense.alignment(Phi, Y, np.outer(W, W))
        return reduce_moments(Moments.from_arrays(Phi, Y), centred=True), (1 - mix) * a1 + mix * a2

    return make
