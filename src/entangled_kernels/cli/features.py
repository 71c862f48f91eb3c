"""Feature maps by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..features import GaussianFeatures, default_feature_maps
from .text_encoding import text_encoder

__all__ = ["FEATURES", "feature_maps"]

FEATURES = ("auto", "linear", "rbf", "fourier")


def feature_maps(name: str, text: Sequence[str], *, seed: int) -> list[Any]:
    """The maps that a name stands for, for `EntangledKernelRidgeCV` to choose from.

    Parameters
    ----------
    name : str
        One of FEATURES: the estimators' ``"auto"``; standardised inputs; a Gaussian kernel of median width by
        Nystroem features, or by random Fourier features.
    text : sequence of str
        Inputs that hold text, which are encoded before each map.
    seed : int
    """
    if name == "auto":
        maps = default_feature_maps(seed)
    elif name == "linear":
        maps = [StandardScaler()]
    else:
        approximation = {"rbf": "nystroem", "fourier": "fourier"}[name]
        maps = [GaussianFeatures(approximation=approximation, random_state=seed)]
    return [make_pipeline(text_encoder(text), one) for one in maps] if text else maps
