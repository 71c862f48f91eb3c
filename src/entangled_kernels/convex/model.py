"""Descent on the model by L-BFGS, for spectral constraints that keep levels away from zero."""

from __future__ import annotations

import numpy as np

from ..linalg import Array
from .certificate import Point, Step
from .descent import minimise
from .kronecker import KroneckerGram
from .penalties import SpectralPenalty, compose

__all__ = ["model_round"]

# The objective is to be much nearer to its minimum than the gap asks for: the bound from below lags behind.
SHARP = 1e-6


def model_round(
    gram: KroneckerGram, penalty: SpectralPenalty, point: Point, steps: int, tol: float = 0.0
) -> Step:
    """Better parameters than those of a point.

    Notes
    -----
    With G = K^1/2 C L, so that the model is K^1/2 G, minimises

        ||Y - K^1/2 G||^2 / (2 alpha) + min over L of tr(G^T G L^-1) / 2

    whose last term is smooth where levels cannot vanish; its gradient is G L^-1 with the best L. At fixed L
    the Hessian is values_i / alpha + 1 / levels_j, in the eigenbasis of L.
    """
    levels, V = np.linalg.eigh(point.L[0])
    root = np.sqrt(gram.values)[:, None]  # (q, 1)
    targets = gram.targets @ V
    unit = 1.0 / np.sqrt(gram.values[:, None] / gram.alpha + 1.0 / levels)  # (q, k)

    def best(G: Array) -> tuple[Array, Array, Array]:
        squares, W = np.linalg.eigh(G.T @ G)
        squares = np.maximum(squares, 0.0)
        return squares, penalty.level_best(squares), W

    def value_and_slope(X: Array) -> tuple[float, Array]:
        G = X * unit
        squares, chosen, W = best(G)
        residual = targets - root * G
        value = float(np.vdot(residual, residual)) / (2 * gram.alpha) + 0.5 * float(np.sum(squares / chosen))
        return value, (((G @ W) / chosen) @ W.T - root * residual / gram.alpha) * unit

    X, evaluations = minimise(
        value_and_slope, root * (point.C @ V) * levels / unit, steps, whitened=True, tol=SHARP * tol
    )
    _, chosen, W = best(X * unit)
    return Step(compose(chosen[None], (V @ W)[None]), None, evaluations)
