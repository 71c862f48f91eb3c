"""Rademacher and generalisation bounds for balls of operator-valued kernels.

Notation: n samples, p outputs, F = {f : ||f|| <= beta} in the space of the kernel. The empirical
Rademacher complexity is R_n(F) = E sup_{f in F} (1/n) sum_i <sigma_i, f(x_i)>, with independent
sigma_i in {-1, 1}^p. The bounds hold for a beta that is fixed before the data are seen; with the
norm of a fitted model they are bounds for the smallest ball that contains the model.

References
----------
R. Huusari and H. Kadri, "Entangled Kernels - Beyond Separability", JMLR 22, 2021.
A. Maurer, "A vector-contraction inequality for Rademacher complexities", ALT 2016.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .linalg import Array

__all__ = ["GeneralizationBound", "generalization_bound", "rademacher_bound", "rkhs_norm"]


class GeneralizationBound(NamedTuple):
    """With probability at least 1 - delta, the risk of every f in the ball is at most `total`.

    Attributes
    ----------
    empirical_risk : float
        Mean loss on the sample.
    complexity : float
        4 sqrt(2) M sqrt(beta^2 kappa p / n).
    confidence : float
        3 M sqrt(log(2 / delta) / (2 n)).
    """

    empirical_risk: float
    complexity: float
    confidence: float

    @property
    def total(self) -> float:
        """Sum of the three terms."""
        return self.empirical_risk + self.complexity + self.confidence


def rkhs_norm(estimator: Any) -> float:
    """Norm sqrt(c^T G c) of a fitted model in the space of its kernel, without the intercept.

    It is computed from the dual coefficients c of `OperatorValuedKernelRidge`, or is the attribute
    ``rkhs_norm_`` of `EntangledKernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.estimators import OperatorValuedKernelRidge
    >>> model = OperatorValuedKernelRidge(alpha=1.0).fit([[1.0], [2.0]], [1.0, 2.0])  # f(x) = 5/6 x
    >>> round(rkhs_norm(model), 6)
    0.833333
    """
    if hasattr(estimator, "solve"):
        estimator.solve()
    if hasattr(estimator, "rkhs_norm_"):
        return float(estimator.rkhs_norm_)
    if not hasattr(estimator, "dual_coef_"):
        raise ValueError(
            f"{type(estimator).__name__} has no dual_coef_ to compute the norm from; pass beta."
        )
    c = estimator.dual_coef_.reshape(-1)
    square = float(c @ (estimator.kernel_(estimator.X_fit_) @ c))
    if square < 0:
        raise ValueError(
            "The model has a negative squared norm: its kernel is indefinite, without such a ball."
        )
    return float(np.sqrt(square))


def _output_traces(source: Any, n_outputs: int | None, X: ArrayLike | None) -> Array:
    """Values trace K(x_i, x_i), shape (n,); of a scalar kernel p k(x_i, x_i)."""
    if hasattr(source, "solve"):
        source.solve()
    if hasattr(source, "kernel_"):
        points = X if X is not None else getattr(source, "X_fit_", None)
        if points is None:
            raise ValueError(
                f"X is needed: {type(source).__name__} does not keep its training points."
            )
        return np.asarray(np.einsum("ioo->i", source.kernel_.diag(points)))
    values = np.asarray(source, dtype=np.float64)
    if n_outputs is None:
        raise ValueError("n_outputs is needed with a Gram matrix or its diagonal.")
    if values.ndim == 2 and values.shape[0] == values.shape[1]:
        values = np.diagonal(values)
    if values.ndim != 1 or len(values) == 0 or (values < 0).any():
        raise ValueError(
            "source must be a fitted estimator, a square scalar Gram matrix (n, n) or its "
            f"nonnegative diagonal (n,), got shape {np.shape(source)}."
        )
    return n_outputs * values


def _ball(source: Any, beta: float | None) -> float:
    if beta is None:
        return rkhs_norm(source) if hasattr(source, "kernel_") else 1.0
    if not beta >= 0:
        raise ValueError(f"beta must be a nonnegative norm, got {beta}.")
    return float(beta)


def rademacher_bound(
    source: Any,
    n_outputs: int | None = None,
    beta: float | None = None,
    *,
    X: ArrayLike | None = None,
) -> float:
    """Bound beta sqrt(tr(K) p) / n on the empirical Rademacher complexity.

    Parameters
    ----------
    source : array of shape (n, n) or (n,), or fitted estimator
        Scalar Gram matrix K of the features, or its diagonal k(x_i, x_i). With an estimator the
        kernel ``kernel_`` is used, and the trace of its block Gram matrix replaces tr(K) p.
    n_outputs : int, optional
        Number p of outputs; needed with a Gram matrix.
    beta : float, optional
        Radius of the ball. For an entangled kernel given by its scalar Gram matrix, norms are those
        of the kernel scaled to ||Q||_F = 1: multiply beta by ||Q||_F for another scale. Default: 1
        for a Gram matrix, the norm of the fitted function for an estimator.
    X : array of shape (n, d), optional
        Points, for an estimator that does not store its training points.

    Returns
    -------
    float

    Notes
    -----
    R_n(F) = (beta / n) E ||sum_i K(., x_i) sigma_i|| <= (beta / n) sqrt(tr G) by Jensen's
    inequality, for the block Gram matrix G. When ||Q||_F = 1 no eigenvalue of D = Q Q^T exceeds 1,
    so that tr G = tr(kron(Phi^T Phi, I_p) D) <= p tr(K). With k(x, x) <= kappa it is at most beta
    sqrt(kappa p / n).

    Examples
    --------
    >>> import numpy as np
    >>> rademacher_bound(np.eye(100), n_outputs=4)
    0.2
    """
    traces = _output_traces(source, n_outputs, X)
    return _ball(source, beta) * float(np.sqrt(traces.sum())) / len(traces)


def generalization_bound(
    source: Any,
    empirical_risk: float,
    n_outputs: int | None = None,
    beta: float | None = None,
    *,
    loss_bound: float = 1.0,
    delta: float = 0.05,
    kappa: float | None = None,
    X: ArrayLike | None = None,
) -> GeneralizationBound:
    """Bound the risk of every f in a ball with probability 1 - delta.

    empirical_risk + 4 sqrt(2) M sqrt(beta^2 kappa p / n) + 3 M sqrt(log(2/delta) / (2n))

    Parameters
    ----------
    source, n_outputs, beta, X
        As in `rademacher_bound`.
    empirical_risk : float
        Mean loss on the sample, such as the mean of ||y_i - f(x_i)||^2.
    loss_bound : float, default=1.0
        M: the loss lies in [0, M] and is 2M-Lipschitz in f(x). The squared norm of residuals of
        norm at most b has M = max(b, b^2).
    delta : float, default=0.05
        The bound holds with probability at least 1 - delta.
    kappa : float, optional
        Bound on k(x, x) for every x. By default the largest value on the sample, which is a true
        bound only when k(x, x) is constant, as for the Gaussian kernel. For an estimator it bounds
        trace K(x, x) / p.

    Returns
    -------
    GeneralizationBound
        With its three terms and their `total`.

    Notes
    -----
    The constant 4 sqrt(2) M has a factor 2 from symmetrisation, sqrt(2) from the contraction
    inequality for vector-valued functions, and 2M from the Lipschitz constant of the loss. One
    third of 3 M sqrt(log(2/delta) / (2n)) is McDiarmid's inequality for the risk; two thirds
    replace the Rademacher complexity by its empirical version.

    Examples
    --------
    >>> import numpy as np
    >>> bound = generalization_bound(np.eye(10_000), 0.1, n_outputs=4, beta=0.1)
    >>> round(bound.complexity, 4), round(bound.confidence, 4), round(bound.total, 4)
    (0.0113, 0.0407, 0.1521)
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}.")
    if not loss_bound > 0:
        raise ValueError(f"loss_bound must be positive, got {loss_bound}.")
    traces = _output_traces(source, n_outputs, X)
    n = len(traces)
    p = source.kernel_.n_outputs if hasattr(source, "kernel_") else int(n_outputs or 1)
    largest = float(traces.max()) if kappa is None else kappa * p  # kappa p
    if largest < traces.max() * (1 - 1e-12):
        raise ValueError(
            f"kappa={kappa} is below the largest value on the sample, {traces.max() / p:.6g}."
        )
    complexity = 4 * np.sqrt(2) * loss_bound * _ball(source, beta) * np.sqrt(largest / n)
    confidence = 3 * loss_bound * np.sqrt(np.log(2 / delta) / (2 * n))
    return GeneralizationBound(float(empirical_risk), float(complexity), float(confidence))
