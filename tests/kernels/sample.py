"""Points, right-hand sides and weights that the solvers are tried on, and their dense systems."""

import numpy as np

from entangled_kernels.kernels import SOLVERS
from kernels.registry import INDEFINITE, KERNELS, D, P

rng = np.random.default_rng(5)
X, R = rng.normal(size=(12, D)), rng.normal(size=(12, P, 2))
MASK = rng.uniform(0.5, 1.5, size=(12, P)) * (rng.uniform(size=(12, P)) > 0.4)
WEIGHTS = rng.uniform(0.1, 4.0, size=(12, P)) * (rng.uniform(size=(12, P)) > 0.4)
WEIGHTS[:, 0] = 1.0  # every row has a target
ROWS = rng.uniform(0.1, 4.0, size=12)
CASES = {"complete": None, "rows": ROWS, "targets": WEIGHTS}
PSD = sorted(set(KERNELS) - INDEFINITE)
# Every registered solver with every registered kernel that it accepts.
PAIRS = [(s, k) for s, solver in SOLVERS.items() for k in PSD if solver.accepts(KERNELS[k](X))]


def dense_system(operator, weights, alpha):
    """S G S + alpha I with S = diag(sqrt(weights))."""
    n, p = operator.n_rows, operator.n_outputs
    weights = np.ones(n) if weights is None else weights
    s = np.sqrt(np.broadcast_to(weights.reshape(n, -1), (n, p))).reshape(-1)
    return s[:, None] * operator.to_dense() * s + alpha * np.eye(n * p)


def check_factor(factor, A, alpha, p, atol=1e-8, columns=2):
    """Solutions and diagonal blocks of the inverse of A by definition."""
    n = len(A) // p
    right = np.random.default_rng(1).normal(size=(n, p, columns))
    expected = np.linalg.solve(A, right.reshape(n * p, -1)).reshape(right.shape)
    np.testing.assert_allclose(
        factor.solve(right, alpha), expected, atol=atol * np.abs(expected).max()
    )
    inverse = np.linalg.inv(A).reshape(n, p, n, p)
    blocks = np.stack([inverse[i, :, i] for i in range(n)])
    np.testing.assert_allclose(
        factor.inverse_diagonal_blocks(alpha), blocks, atol=atol * np.abs(blocks).max()
    )
