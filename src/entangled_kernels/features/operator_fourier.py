"""Random Fourier features of operator-valued kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, solve
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..doc_links import DocLinkMixin
from ..linalg import Array, psd_factor
from ..parameters import check_choice, check_integer, check_penalty

__all__ = ["OperatorFourierFeatures"]

KINDS = ("decomposable", "curl_free", "divergence_free", "transformable")


class OperatorFourierFeatures(TransformerMixin, DocLinkMixin, BaseEstimator):
    """Random Fourier features of operator-valued kernels that are made from a Gaussian kernel.

    Parameters
    ----------
    kernel : str, default="decomposable"
        ``"decomposable"`` is exp(-gamma |x - z|^2) T; ``"curl_free"`` and ``"divergence_free"`` are
        those of `entangled_kernels.kernels`, with as many outputs as columns; ``"transformable"``
        is exp(-gamma |S_l x - S_m z|^2) in row l and column m.
    gamma : float or None, default=None
        Of the Gaussian; None is one over the number of columns that it works on.
    n_frequencies : int, default=100
        Each gives a cosine and a sine. The error of the kernel falls with the root of their number.
    output_kernel : array-like of shape (p, p) or None, default=None
        Psd T of ``"decomposable"``; None is the identity over the targets that `fit` sees.
    maps : list of p arrays of shape (d', d) or None, default=None
        Matrices S_l of ``"transformable"``; None is the rows of the identity, one coordinate to an
        output.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    n_outputs_ : int
    gamma_ : float
    frequencies_ : ndarray of shape (n_frequencies, d)
        For ``"transformable"`` of shape (p * n_frequencies, d).
    blocks_ : ndarray of shape (m, p, r)
        B_a of every feature: the vector field of feature a and weight w is phi_a(x) B_a w.
    groups_ : ndarray of shape (m,)
        Features with the same number share their weight.
    n_features_in_, feature_names_in_

    Notes
    -----
    For a kernel that is the mean of cos(<w, x - z>) B(w) B(w)^T over Gaussian w of variance 2
    gamma, draws of w give features cos(<w, x>) and sin(<w, x>), times B(w): a root of T
    (decomposable), w (curl-free), |w| times an orthonormal basis of the complement of w
    (divergence-free). Of a transformable kernel the features are those of S_l x, one set of weights
    serving all outputs.

    A model is f(x) = phi(x) W with W = blocks w: linear in the scalar features (n, m) of
    `transform`. Its ridge regression needs only their moments; see `solve`. Time n m d to
    transform.

    References
    ----------
    R. Brault, M. Heinonen and F. d'Alche-Buc, "Random Fourier features for operator-valued
    kernels", ACML 2016.

    H. Q. Minh, "Operator-valued Bochner theorem, Fourier feature maps for operator-valued kernels,
    and vector-valued learning", 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels import OperatorFourierFeatures
    >>> from entangled_kernels.kernels import DivergenceFreeKernel
    >>> features = OperatorFourierFeatures("divergence_free", gamma=1.0, n_frequencies=2000)
    >>> features = features.set_params(random_state=0)
    >>> X = np.array([[0.0, 0.0], [0.3, 0.1]])
    >>> Phi = features.fit(X).operator_features(X)
    >>> approximate = np.einsum("nrp,tsp->ntrs", Phi, Phi)
    >>> bool(np.abs(approximate - DivergenceFreeKernel(2).blocks(X)).max() < 0.1)
    True
    """

    frequencies_: Array

    def __init__(
        self,
        kernel: str = "decomposable",
        *,
        gamma: float | None = None,
        n_frequencies: int = 100,
        output_kernel: ArrayLike | None = None,
        maps: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_frequencies = n_frequencies
        self.output_kernel = output_kernel
        self.maps = maps
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the frequencies; of the table only the number of columns, and of targets, is used.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n, p) or (n,), optional
            Only its number of columns, for ``"decomposable"`` without an output kernel.
        """
        check_choice("kernel", self.kernel, KINDS)
        check_integer("n_frequencies", self.n_frequencies, low=1)
        if self.gamma is not None:
            check_penalty("gamma", self.gamma)
        d = validate_data(self, X, dtype=np.float64).shape[1]
        shape: tuple[int, ...] = getattr(y, "shape", None) or np.asarray(y).shape
        targets = 1 if len(shape) < 2 else shape[1]
        rng = check_random_state(self.random_state)
        draw = {
            "decomposable": self._draw_decomposable,
            "curl_free": self._draw_field,
            "divergence_free": self._draw_field,
            "transformable": self._draw_transformable,
        }[self.kernel]
        draw(d, targets, rng)
        return self

    def transform(self, X: Any) -> Array:
        """Scalar features of rows, (n, m): cosines first, then sines."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            angles = X @ self.frequencies_.T  # (n, m / 2)
        if not np.isfinite(angles).all():
            raise ValueError(
                f"X must have values whose products with the frequencies are finite, got "
                f"{np.abs(X).max():g} as the largest; scale the columns"
            )
        return np.asarray(np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(self.n_frequencies))

    def operator_features(self, X: Any) -> Array:
        """Features Phi(x) with K(x, z) near Phi(x) Phi(z)^T, shape (n, p, D)."""
        scalar = self.transform(X)
        p, r = self.blocks_.shape[1:]
        shared = np.zeros((len(scalar), int(self.groups_.max()) + 1, p, r))
        np.add.at(
            shared.swapaxes(0, 1), self.groups_, np.einsum("nm,mpr->mnpr", scalar, self.blocks_)
        )
        return shared.transpose(0, 2, 1, 3).reshape(len(scalar), p, -1)  # (n, p, groups * r)

    def solve(self, C: Array, B: Array, alpha: float) -> Array:
        """Ridge regression from moments of the scalar features.

        Parameters
        ----------
        C : ndarray of shape (m, m)
            sum phi phi^T, of features less their mean where there is an intercept.
        B : ndarray of shape (m, p)
            sum phi y^T.
        alpha : float

        Returns
        -------
        W : ndarray of shape (m, p)
            The model is phi(x) W.

        Notes
        -----
        With w the weights and (g, i) the i-th of group g, the normal equations have the matrix sum
        over a in g and b in h of C_ab (B_a^T B_b)_ij. Time (groups r)^3 / 3; where all blocks are
        the same, m^3 + p^3.
        """
        check_is_fitted(self)
        blocks = self.blocks_
        m, p, r = blocks.shape
        if self.kernel == "decomposable":
            root = blocks[0]
            (values, U), (levels, V) = eigh(C), eigh(root @ root.T)
            levels = np.maximum(levels, 0.0)
            gains = levels / (np.outer(np.maximum(values, 0.0), levels) + alpha)  # (m, p)
            return np.asarray(U @ ((U.T @ B @ V) * gains) @ V.T)
        n_groups = int(self.groups_.max()) + 1
        flat = blocks.transpose(0, 2, 1).reshape(m * r, p)  # rows B_a[:, i]
        products = np.repeat(np.repeat(C, r, axis=0), r, axis=1) * (flat @ flat.T)  # (m r, m r)
        index = (self.groups_[:, None] * r + np.arange(r)).ravel()  # (m r,)
        gather = np.zeros((n_groups * r, m * r))
        gather[index, np.arange(m * r)] = 1.0
        right = np.einsum("mp,mpr->mr", B, blocks).ravel()
        system = gather @ products @ gather.T
        system[np.diag_indices(n_groups * r)] += alpha
        w = solve(system, gather @ right, assume_a="pos").reshape(n_groups, r)
        return np.asarray(np.einsum("mpr,mr->mp", blocks, w[self.groups_]))

    def _draw_decomposable(self, d: int, targets: int, rng: np.random.RandomState) -> None:
        root = np.eye(targets)
        if self.output_kernel is not None:
            root = np.asarray(psd_factor(self.output_kernel, "output_kernel"))
        self._set(rng, d, len(root))
        self.blocks_ = np.tile(root, (2 * int(self.n_frequencies), 1, 1))

    def _draw_field(self, d: int, targets: int, rng: np.random.RandomState) -> None:
        if self.kernel == "divergence_free" and d < 2:
            raise ValueError(
                "kernel='divergence_free' needs at least 2 columns, got 1; on a line use another"
            )
        self._set(rng, d, d)
        w = self.frequencies_
        if self.kernel == "curl_free":
            blocks = w[:, :, None]
        else:
            complement = np.linalg.svd(w[:, None, :])[2][:, 1:, :].swapaxes(1, 2)  # (f, d, d - 1)
            blocks = np.linalg.norm(w, axis=1)[:, None, None] * complement
        self.blocks_ = np.concatenate([blocks, blocks])

    def _draw_transformable(self, d: int, targets: int, rng: np.random.RandomState) -> None:
        maps = [np.eye(d)[[i]] for i in range(d)] if self.maps is None else list(self.maps)
        maps = [np.atleast_2d(np.asarray(S, dtype=np.float64)) for S in maps]
        if not maps or any(S.shape != maps[0].shape or S.shape[1] != d for S in maps):
            shapes = [S.shape for S in maps]
            raise ValueError(
                f"maps must be matrices of one shape, with {d} columns as X has, got {shapes}"
            )
        p, f = len(maps), int(self.n_frequencies)
        self._set(rng, len(maps[0]), p)
        # A frequency of S_l x is S_l^T w for x.
        self.frequencies_ = np.concatenate([self.frequencies_ @ S for S in maps])
        blocks = np.repeat(np.eye(p), f, axis=0)[:, :, None]  # (p f, p, 1)
        self.blocks_ = np.concatenate([blocks, blocks])
        self.groups_ = np.concatenate([np.tile(np.arange(f), p), f + np.tile(np.arange(f), p)])

    def _set(self, rng: np.random.RandomState, width: int, p: int) -> None:
        """Draw frequencies for points of a width, and what most kinds share."""
        f = int(self.n_frequencies)
        self.gamma_ = 1.0 / width if self.gamma is None else float(self.gamma)
        self.frequencies_ = np.sqrt(2.0 * self.gamma_) * rng.normal(size=(f, width))
        self.groups_, self.n_outputs_ = np.arange(2 * f), p
