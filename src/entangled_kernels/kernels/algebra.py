"""Sums, multiples and blockwise products of operator-valued kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import (
    Array,
    BlockOperator,
    HadamardOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
    SumOperator,
)
from .base import OperatorValuedKernel, frozen_array
from .scalar import scalar_gram
from .separable import SeparableKernel
from .unstructured import PartialTraceKernel

__all__ = ["HadamardKernel", "SumKernel"]

# A product of sums stores one n x t matrix for each pair of terms; products with more pairs are
# computed some rows at a time.
MOST_PRODUCT_TERMS = 9


def _common_outputs(kernels: Sequence[OperatorValuedKernel]) -> int:
    for kernel in kernels:
        if not isinstance(kernel, OperatorValuedKernel):
            raise TypeError(f"kernels must be operator-valued kernels, got {kernel!r}")
    outputs = [kernel.n_outputs for kernel in kernels]
    if len(set(outputs)) != 1:
        raise ValueError(
            f"kernels must have the same number of outputs to be combined, got {outputs}."
        )
    return outputs[0]


class SumKernel(OperatorValuedKernel):
    """K(x, z) = sum_l weights[l] K_l(x, z); also written ``a + b`` and ``2.0 * a``.

    Parameters
    ----------
    kernels : sequence of OperatorValuedKernel
        Sums inside are flattened.
    weights : sequence of float, optional
        Ones by default. A negative weight may make the kernel indefinite.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = SeparableKernel("linear", np.eye(2)), SeparableKernel("rbf", np.ones((2, 2)))
    >>> (a + 2.0 * b).blocks(np.zeros((1, 3)))[0, 0]
    array([[2., 2.],
           [2., 2.]])
    """

    def __init__(
        self, kernels: Sequence[OperatorValuedKernel], weights: Sequence[float] | None = None
    ) -> None:
        if not isinstance(kernels, list | tuple) or not kernels:
            raise ValueError(f"kernels must be a list of at least one kernel, got {kernels!r}")
        self.n_outputs = _common_outputs(kernels)
        weights = frozen_array(
            np.ones(len(kernels)) if weights is None else weights, "weights", 1
        ).tolist()
        if len(weights) != len(kernels):
            raise ValueError(
                f"weights has {len(weights)} entries for {len(kernels)} kernels; give one each."
            )
        terms: list[tuple[float, OperatorValuedKernel]] = []
        for weight, kernel in zip(weights, kernels, strict=True):
            if isinstance(kernel, SumKernel):
                terms += [
                    (weight * w, k) for w, k in zip(kernel.weights, kernel.kernels, strict=True)
                ]
            else:
                terms.append((weight, kernel))
        self.kernels: tuple[OperatorValuedKernel, ...] = tuple(kernel for _, kernel in terms)
        self.weights: tuple[float, ...] = tuple(weight for weight, _ in terms)

    def __repr__(self) -> str:
        parts = [
            repr(k) if w == 1.0 else f"{w:g} * {k!r}"
            for w, k in zip(self.weights, self.kernels, strict=True)
        ]
        return " + ".join(parts)

    @property
    def guaranteed_psd(self) -> bool:
        """Whether theory promises a psd Gram matrix: nonnegative weights of such kernels."""
        return min(self.weights) >= 0 and all(kernel.guaranteed_psd for kernel in self.kernels)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix; a sum of Kronecker products when every term is separable."""
        operators = [kernel(X, Z) for kernel in self.kernels]
        if len(operators) == 1:
            return _scaled(operators[0], self.weights[0])
        if all(isinstance(operator, KroneckerOperator) for operator in operators):
            Ts = [w * operator.output for w, operator in zip(self.weights, operators, strict=True)]
            return SumOfKroneckersOperator(
                np.stack([operator.gram for operator in operators]), np.stack(Ts)
            )
        return SumOperator(operators, self.weights)

    def diag(self, X: ArrayLike) -> Array:
        """Values K(x_i, x_i), shape (n, p, p)."""
        pairs = zip(self.weights, self.kernels, strict=True)
        return np.asarray(np.sum([weight * kernel.diag(X) for weight, kernel in pairs], axis=0))

    def to_partial_trace(self) -> PartialTraceKernel:
        """Partial-trace form of a sum of separable kernels.

        The operator is P(x, z) = sum_l weights[l] kron(T_l, k_l(x, z) e_l e_l^T), with one feature
        per term.
        """
        separable = [kernel for kernel in self.kernels if isinstance(kernel, SeparableKernel)]
        if len(separable) != len(self.kernels):
            raise TypeError(
                "to_partial_trace needs separable terms only; other terms have their own form."
            )
        Ts = np.stack([w * kernel.T for w, kernel in zip(self.weights, separable, strict=True)])
        return PartialTraceKernel(
            partial(_separable_terms_operator, separable, Ts),
            self.n_outputs,
            guaranteed_psd=self.guaranteed_psd,
        )


def _separable_terms_operator(
    kernels: Sequence[SeparableKernel], Ts: Array, X: Array, Z: Array
) -> Array:
    """The operator P of `SumKernel.to_partial_trace`, shape (n, t, p*L, p*L)."""
    L, p, _ = Ts.shape
    Ks = np.stack([scalar_gram(kernel.kernel, X, Z, kernel.params) for kernel in kernels])
    P = np.zeros((len(X), len(Z), p, L, p, L))
    each = np.arange(L)
    # Advanced indices on both sides of a slice put their axis first: (L, n, t, p, p).
    P[:, :, :, each, :, each] = np.einsum("lop,lij->lijop", Ts, Ks)
    return P.reshape(len(X), len(Z), p * L, p * L)


def _scaled(operator: BlockOperator, weight: float) -> BlockOperator:
    """Multiple of an operator, with the same structure."""
    if isinstance(operator, LowRankKroneckerOperator):
        return LowRankKroneckerOperator(operator.Phi, operator.Psi, weight * operator.output)
    if isinstance(operator, KroneckerOperator):
        return KroneckerOperator(operator.gram, weight * operator.output)
    if isinstance(operator, LowRankOperator) and weight >= 0:
        metric = None if operator.metric is None else weight * operator.metric
        Q = np.sqrt(weight) * operator.Q
        return LowRankOperator(operator.Phi, operator.Psi, Q, operator.n_outputs, metric)
    return SumOperator([operator], [weight])


def _kronecker_terms(operator: BlockOperator) -> tuple[Array, Array] | None:
    """Factors (L, n, t) and (L, p, p) of a sum of Kronecker products; None for other structures."""
    if isinstance(operator, SumOfKroneckersOperator):
        return operator.Ks, operator.Ts
    if isinstance(operator, KroneckerOperator):
        return operator.gram[None], operator.output[None]
    return None


class HadamardKernel(OperatorValuedKernel):
    """K(x, z) = K_1(x, z) * K_2(x, z), entry by entry; also written ``a * b``.

    Psd when both factors are (Schur's product theorem).

    Parameters
    ----------
    first, second : OperatorValuedKernel

    Examples
    --------
    >>> import numpy as np
    >>> a = SeparableKernel("linear", 2.0 * np.eye(2))
    >>> (a * a).blocks(np.ones((1, 3)))[0, 0]
    array([[36.,  0.],
           [ 0., 36.]])
    """

    def __init__(self, first: OperatorValuedKernel, second: OperatorValuedKernel) -> None:
        self.n_outputs = _common_outputs([first, second])
        self.first, self.second = first, second

    def __repr__(self) -> str:
        return f"({self.first!r}) * ({self.second!r})"

    @property
    def guaranteed_psd(self) -> bool:
        """Whether theory promises a psd Gram matrix: both factors do."""
        return self.first.guaranteed_psd and self.second.guaranteed_psd

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> BlockOperator:
        """Lazy block Gram matrix; a Kronecker product, or a sum of them, when both factors are."""
        first, second = self.first(X, Z), self.second(X, Z)
        a, b = _kronecker_terms(first), _kronecker_terms(second)
        if a is None or b is None or len(a[0]) * len(b[0]) > MOST_PRODUCT_TERMS:
            return HadamardOperator(first, second)
        # The product of two sums of Kronecker products is the sum over pairs of their terms.
        Ks = (a[0][:, None] * b[0]).reshape(-1, first.n_rows, first.n_columns)
        Ts = (a[1][:, None] * b[1]).reshape(-1, self.n_outputs, self.n_outputs)
        return KroneckerOperator(Ks[0], Ts[0]) if len(Ks) == 1 else SumOfKroneckersOperator(Ks, Ts)

    def diag(self, X: ArrayLike) -> Array:
        """Values K(x_i, x_i), shape (n, p, p)."""
        return self.first.diag(X) * self.second.diag(X)
