import numpy as np
import pytest
from scipy.stats import multivariate_normal

from entangled_kernels.conditioning.row_likelihood import RowsWithBlanks, row_likelihood


@pytest.mark.parametrize("blanks", [0.0, 0.4])
def test_every_row_has_the_likelihood_of_its_observed_cells(blanks):
    rng = np.random.default_rng(0)
    n, p, r = 12, 4, 2
    A = rng.normal(size=(p, p))
    psi, V = A @ A.T + np.eye(p), rng.normal(size=(n, p, r))
    Z = np.where(rng.random((n, p)) < blanks, np.nan, rng.normal(size=(n, p)))
    Z[0] = 1.0
    found = row_likelihood(RowsWithBlanks.of(Z, np.ones((n, 1)), np.ones(n)), psi, V)
    for i in range(n):
        seen = np.isfinite(Z[i])
        if seen.any():
            whole = (psi + V[i] @ V[i].T)[np.ix_(seen, seen)]
            expected = multivariate_normal(np.zeros(seen.sum()), whole).logpdf(Z[i, seen])
            np.testing.assert_allclose(found.log[i], expected)
            np.testing.assert_allclose(found.solved[i, seen], np.linalg.solve(whole, Z[i, seen]))
