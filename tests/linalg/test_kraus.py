import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entangled_kernels.linalg import (
    choi_from_kraus,
    kraus_from_choi,
    kraus_from_entangler,
    psd_factor,
    separable_kraus,
)

from reference import blocks as reference

sizes = st.integers(1, 4)
seeds = st.integers(0, 2**32 - 1)


def random_kraus(seed, r, p, m, dtype=complex):
    rng = np.random.default_rng(seed)
    kraus = rng.normal(size=(r, p, m))
    return kraus + 1j * rng.normal(size=kraus.shape) if dtype is complex else kraus


@pytest.mark.parametrize("dtype", [float, complex])
@given(r=sizes, p=sizes, m=sizes, seed=seeds)
def test_choi_kraus_round_trip(r, p, m, seed, dtype):
    kraus = random_kraus(seed, r, p, m, dtype)
    D = choi_from_kraus(kraus)
    np.testing.assert_allclose(D, reference.choi(kraus), atol=1e-12)
    back = kraus_from_choi(D, p)
    assert back.shape == (min(r, p * m), p, m)
    np.testing.assert_allclose(choi_from_kraus(back), D, atol=1e-11)


@given(p=sizes, m=sizes, rank=sizes, seed=seeds)
def test_entangler_equals_its_definition(p, m, rank, seed):
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(p * m, p * m)), rng.normal(size=(p, rank))
    T, Phi, Psi = V @ V.T, rng.normal(size=(2, m)), rng.normal(size=(3, m))
    kraus = kraus_from_entangler(U, T, m)
    assert len(kraus) == m * min(p, rank)
    expected = reference.entangled_blocks(U, T, Phi, Psi)
    actual = reference.kraus_blocks(kraus, Phi, Psi)
    np.testing.assert_allclose(actual, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


def test_complex_entangler_equals_its_definition():
    rng = np.random.default_rng(0)
    p, m = 2, 3
    U, V = random_kraus(1, 1, p * m, p * m)[0], random_kraus(2, 1, p, p)[0]
    x, z = rng.normal(size=m) + 1j * rng.normal(size=m), rng.normal(size=m)
    P = U @ np.kron(V @ V.conj().T, np.outer(x, z.conj())) @ U.conj().T
    expected = reference.partial_trace(P, (p, m), 0)
    actual = sum(
        M @ np.outer(x, z.conj()) @ M.conj().T for M in kraus_from_entangler(U, V @ V.conj().T, m)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-10)


@pytest.mark.parametrize("dtype", [float, complex])
@given(p=sizes, m=sizes, seed=seeds)
def test_separable_kraus_gives_the_identity_kron_T(p, m, seed, dtype):
    V = random_kraus(seed, 1, p, p, dtype)[0]
    T = V @ V.conj().T
    np.testing.assert_allclose(
        choi_from_kraus(separable_kraus(T, m)), np.kron(np.eye(m), T), atol=1e-12
    )


def test_stacks_share_the_largest_rank():
    kraus = np.stack([random_kraus(seed, 3, 2, 4) for seed in range(5)])
    kraus[0, 1:] = 0
    D = choi_from_kraus(kraus)
    for i in range(5):
        np.testing.assert_allclose(D[i], choi_from_kraus(kraus[i]))
    back = kraus_from_choi(D, 2)
    assert back.shape == (5, 3, 2, 4)
    np.testing.assert_allclose(choi_from_kraus(back), D, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: psd_factor(np.diag([1.0, -1.0])),
            "T must be positive semidefinite.*eigenvalue -1",
        ),
        (lambda: psd_factor(np.triu(np.ones((2, 2)))), "T must be symmetric"),
        (lambda: psd_factor(np.ones((2, 3))), "T must be a square matrix"),
        (lambda: kraus_from_choi(-np.eye(4), 2), "D must be positive semidefinite"),
        (lambda: kraus_from_choi(np.triu(np.ones((4, 4))), 2), "D must be symmetric"),
        (lambda: kraus_from_choi(np.eye(4), 3), "n_outputs=3"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(ValueError, match=message):
        make()
