"""Psd matrices on a product of two spaces whose entanglement is known."""

import numpy as np

BELL = np.outer([1, 0, 0, 1], [1, 0, 0, 1]) / 2


def werner(share):
    """Singlet with weight `share`, white noise for the rest; entangled exactly above 1/3."""
    singlet = np.array([0, 1, -1, 0]) / np.sqrt(2)
    return share * np.outer(singlet, singlet) + (1 - share) * np.eye(4) / 4


def horodecki(a):
    """Return the 3 x 3 state of P. Horodecki (1997), PPT and entangled for 0 < a < 1."""
    rho = a * np.eye(9)
    for i, j in [(0, 4), (0, 8), (4, 8)]:
        rho[i, j] = rho[j, i] = a
    rho[6, 6] = rho[8, 8] = (1 + a) / 2
    rho[6, 8] = rho[8, 6] = np.sqrt(1 - a**2) / 2
    return rho / (8 * a + 1)


def random_psd(rng, size, dtype=complex):
    B = rng.normal(size=(size, size)) + (
        1j * rng.normal(size=(size, size)) if dtype is complex else 0
    )
    return B @ B.conj().T


def separable_mixture(seed, dims, n_terms):
    rng = np.random.default_rng(seed)
    return sum(np.kron(random_psd(rng, dims[0]), random_psd(rng, dims[1])) for _ in range(n_terms))
