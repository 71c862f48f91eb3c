"""What a learner other than the entangled one has found, in words: weights of kernels, networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .screen import Screen

__all__ = ["kernel_weights", "learner_in_words", "show_weights"]


def kernel_weights(learner: Any) -> list[tuple[str, float]]:
    """Names and weights of kernels or views, the largest first; means over targets. Empty without any."""
    names = getattr(learner, "kernel_names_", getattr(learner, "view_names_", None))
    weights = getattr(learner, "kernel_weights_", getattr(learner, "view_weights_", None))
    if names is None or weights is None:
        return []
    means = np.asarray(weights).reshape(len(names), -1).mean(axis=1)
    order = np.argsort(-means, kind="stable")
    return [(str(names[place]), float(means[place])) for place in order]


def learner_in_words(learner: Any, names: Sequence[str]) -> list[str] | None:
    """Sentences about what the targets share; None where `sharing_in_words` says it."""
    if hasattr(learner, "granger_"):
        strength = np.array(learner.granger_)
        np.fill_diagonal(strength, -1.0)
        i, j = divmod(int(np.argmax(strength)), len(strength))
        if i == j or strength[i, j] <= 0.0:
            return ["No variable acts on another."]
        return [f"'{names[j]}' acts on '{names[i]}' most; all influences are below."]
    kind = getattr(learner, "output_kernel", None)
    if hasattr(learner, "kernel_weights_") and isinstance(kind, str) and kind in ("identity", "diagonal"):
        whose = "its own weights" if kind == "diagonal" else "the same weights"
        return [f"Each target is predicted on its own, from kernels with {whose}."]
    if hasattr(learner, "features_"):
        law = learner.features_.kernel.replace("_", "-")
        if law in ("curl-free", "divergence-free"):
            return [f"The targets are the components of one {law} field."]
        return [f"The targets share random Fourier features of a {law} kernel."]
    return None


def show_weights(screen: Screen, learner: Any) -> None:
    """Print the weights of kernels, where there are any."""
    weights = kernel_weights(learner)
    if weights:
        what = "view" if hasattr(learner, "view_names_") else "kernel"
        screen.table([what, "weight"], weights, title=f"Weight of every {what}")
