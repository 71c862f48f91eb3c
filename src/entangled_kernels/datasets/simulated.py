"""Simulated tables whose kernel is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..kernels import KrausKernel, SeparableKernel
from ..kernels.scalar import FeatureKernel, feature_rows
from ..parameters import check_integer, check_positive
from .bunch import make_bunch

__all__ = ["make_bilinear", "make_entangled"]

BILINEAR = """Bilinear simulation
===================

Y = T C A + C K with one column of Y, A and K for each sample; see
`entangled_kernels.datasets.make_bilinear`.
"""
ENTANGLED = """Entangled simulation
====================

A draw from a Gaussian process with a known entangled kernel; see
`entangled_kernels.datasets.make_entangled`.
"""


def make_bilinear(
    n_samples: int = 20,
    n_outputs: int = 100,
    n_features: int = 10,
    *,
    n_test: int = 200,
    output_rank: int | None = None,
    noise: float = 0.1,
    random_state: Any = None,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Targets that solve T C A + C K = Y, the bilinear simulation of the paper.

    Parameters
    ----------
    n_samples, n_outputs, n_features : int
        Training rows n, outputs p, inputs d.
    n_test : int, default=200
        Number of test rows.
    output_rank : int, optional
        Rank of T; n_outputs by default.
    noise : float, default=0.1
        Standard deviation of the noise, in units of the targets'.
    random_state : int, RandomState or None
    as_frame : bool, default=False
        Give data frames.
    return_X_y : bool, default=False
        Give ``(data, target)`` of the training rows alone.

    Returns
    -------
    Bunch
        ``data`` (n, d) and ``target`` (n, p) of the training rows, ``data_test`` and
        ``target_test`` of the others; ``T`` (p, p), ``C`` (p, n), ``A`` and ``K`` (n, n + n_test),
        ``kernel``, ``noise_std``; ``feature_names``, ``target_names``, ``frame`` and ``DESCR``.

    Notes
    -----
    The paper gives the equation and not the distributions of its matrices; ours are below. Samples
    are columns, and the first n, x_1, ..., x_n, are the training rows:

        x_j ~ N(0, I_d),                      K[i, j] = <x_i, x_j> / d
        G ~ N(0, 1) entries, (d, d),          A[i, j] = <G x_i, G x_j> / d^2
        R ~ N(0, 1) entries, (p, rank),       T = R R^T / rank
        C ~ N(0, 1) entries, (p, n)
        Y = T C A + C K,                      divided by its standard deviation, plus noise

    So column j is sum_i (a(x_i, x_j) T + k(x_i, x_j) I) c_i: a function of the space of the kernel
    a T + k I, a sum of two separable kernels that is not separable. It is linear in x, so that the
    linear kernel can represent it.

    Examples
    --------
    >>> from entangled_kernels.datasets import make_bilinear
    >>> rows = make_bilinear(20, 100, random_state=0)
    >>> rows.data.shape, rows.target.shape, rows.target_test.shape
    ((20, 10), (20, 100), (200, 100))
    """
    rank = n_outputs if output_rank is None else output_rank
    _check_sizes(
        noise, n_samples=n_samples, n_outputs=n_outputs, n_features=n_features, output_rank=rank
    )
    check_integer("n_test", n_test, low=0)
    random = check_random_state(random_state)
    X = random.standard_normal((n_samples + n_test, n_features))
    G = random.standard_normal((n_features, n_features))
    R = random.standard_normal((n_outputs, rank))
    C = random.standard_normal((n_outputs, n_samples))
    K = X[:n_samples] @ X.T / n_features
    A = X[:n_samples] @ (G.T @ G) @ X.T / n_features**2
    T = R @ R.T / rank
    signal = T @ C @ A + C @ K  # (p, n + n_test)
    scale = signal.std()
    Y = (signal / scale + noise * random.standard_normal(signal.shape)).T
    metrics = G.T @ G / n_features**2, np.eye(n_features) / n_features
    return make_bunch(
        X[:n_samples],
        Y[:n_samples],
        *_names(n_features, n_outputs),
        BILINEAR,
        as_frame=as_frame,
        return_X_y=return_X_y,
        data_test=X[n_samples:],
        target_test=Y[n_samples:],
        T=T,
        # Divided like the targets, so that the equation holds for the returned values.
        C=C / scale,
        A=A,
        K=K,
        kernel=SeparableKernel(FeatureKernel(None, metrics[0]), T)
        + SeparableKernel(FeatureKernel(None, metrics[1]), np.eye(n_outputs)),
        noise_std=noise,
    )


def make_entangled(
    n_samples: int = 100,
    n_features: int = 5,
    n_outputs: int = 4,
    *,
    n_kraus: int = 2,
    feature_map: Any = None,
    noise: float = 0.1,
    random_state: Any = None,
    as_frame: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Targets drawn from a Gaussian process whose kernel is entangled and known.

    Parameters
    ----------
    n_samples, n_features, n_outputs : int
        Rows n, inputs d, outputs p.
    n_kraus : int, default=2
        Number r of Kraus operators.
    feature_map : transformer, optional
        Gives the m features phi(x), fitted on the inputs; the inputs themselves by default.
    noise : float, default=0.1
        Standard deviation of the noise, in units of the signal's expected one.
    random_state : int, RandomState or None
    as_frame : bool, default=False
        Give data frames.
    return_X_y : bool, default=False
        Give ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` (n, d), ``target`` (n, p), ``signal`` (n, p; the targets without noise), ``kernel``
        (a `KrausKernel`), ``noise_std``, ``feature_names``, ``target_names``, ``frame`` and
        ``DESCR``.

    Notes
    -----
    The entries of x, of the operators M_1, ..., M_r, (p, m), and of w are drawn from N(0, 1), the
    operators then divided by one number such that the variance of the signal, averaged over rows
    and outputs, is expected to be one. Then

        f(x) = sum_i w_i M_i phi(x),   cov(f(x), f(z)) = sum_i M_i phi(x) phi(z)^T M_i^T = K(x, z)

    so f is an exact draw, at the cost n m p r.

    Examples
    --------
    >>> from entangled_kernels.datasets import make_entangled
    >>> rows = make_entangled(random_state=0)
    >>> rows.target.shape
    (100, 4)
    >>> rows.kernel.entanglement().entangled
    True
    """
    _check_sizes(
        noise, n_samples=n_samples, n_features=n_features, n_outputs=n_outputs, n_kraus=n_kraus
    )
    random = check_random_state(random_state)
    X = random.standard_normal((n_samples, n_features))
    fitted = None if feature_map is None else clone(feature_map).fit(X)
    Phi = feature_rows(fitted, X)
    kraus = random.standard_normal((n_kraus, n_outputs, Phi.shape[1]))
    projections = np.einsum("rom,nm->nor", kraus, Phi)  # (n, p, r)
    scale = np.sqrt(np.mean(np.sum(projections**2, axis=2)))
    signal = projections @ random.standard_normal(n_kraus) / scale  # (n, p)
    return make_bunch(
        X,
        signal + noise * random.standard_normal(signal.shape),
        *_names(n_features, n_outputs),
        ENTANGLED,
        as_frame=as_frame,
        return_X_y=return_X_y,
        signal=signal,
        kernel=KrausKernel(kraus / scale, fitted),
        noise_std=noise,
    )


def _names(n_features: int, n_outputs: int) -> tuple[list[str], list[str]]:
    return [f"x{i}" for i in range(n_features)], [f"y{o}" for o in range(n_outputs)]


def _check_sizes(noise: float, **sizes: Any) -> None:
    for name, size in sizes.items():
        check_integer(name, size, low=1)
    check_positive("noise", noise, zero_allowed=True)
