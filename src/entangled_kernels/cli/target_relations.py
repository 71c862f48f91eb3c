"""Which targets share what in a learned kernel, in numbers and in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators import EntangledKernelRidge
from ..linalg import Array
from ..tables.phrases import counted, quoted

__all__ = ["output_relations", "sharing_in_words", "strongest_pairs"]


# Correlations below this are not worth a sentence, above the second they are strong.
WEAK, STRONG = 0.1, 0.5
PAIRS = 5


def output_relations(model: EntangledKernelRidge, X: Any) -> Array:
    """Correlations (p, p) between targets in the kernel's mean over the rows, K(x, x) about their centre.

    One where two targets are the same to the kernel, zero where they have nothing in common.
    """
    p = len(model.coef_)
    shared = np.zeros((p, p))
    if model.kraus_.shape[0]:
        Z = model.project(X)  # (n, p, r)
        Z = Z - Z.mean(axis=0)
        shared += np.einsum("nor,nqr->oq", Z, Z) / len(Z)
    if model.metric_ is not None:
        Phi = np.asarray(X if model.feature_map_ is None else model.feature_map_.transform(X), dtype=float)
        Phi = Phi - Phi.mean(axis=0)
        shared += np.eye(p) * np.einsum("ni,ij,nj->", Phi, model.metric_, Phi, optimize=True) / len(Phi)
    size = np.sqrt(np.diag(shared))
    scale = np.where(size > 0.0, size, 1.0)
    correlations: Array = shared / np.outer(scale, scale)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def strongest_pairs(correlations: Array, names: list[str]) -> list[tuple[str, str, float]]:
    """Pairs of targets with their correlation, the strongest first."""
    rows, columns = np.triu_indices(len(names), 1)
    values = correlations[rows, columns]
    order = np.argsort(-np.abs(values), kind="stable")
    return [(names[rows[i]], names[columns[i]], float(values[i])) for i in order]


def sharing_in_words(settings: dict[str, Any], correlations: Array | None, names: list[str]) -> list[str]:
    """Sentences about what the targets share, from the parameters of the model and `output_relations`."""
    if len(names) == 1:
        return [f"There is one target, '{names[0]}', and nothing to share."]
    if settings.get("shrinkage") == 1.0:
        return ["Plain kernel ridge: each target is predicted on its own, from the same features."]
    if settings.get("prediction") == "partial_trace":
        return [
            "All targets share one learned measure of which rows are alike; with it each target is "
            "predicted on its own (partial trace)."
        ]
    if correlations is None:
        return ["The kernel relates the targets to each other; how, depends on the inputs."]
    pairs = [pair for pair in strongest_pairs(correlations, names) if abs(pair[2]) >= WEAK]
    if not pairs:
        return ["The kernel hardly relates the targets to each other."]
    sentences = [_pair_in_words(*pair) for pair in pairs[:PAIRS]]
    if len(pairs) > PAIRS:
        rest = counted(len(pairs) - PAIRS, "further pair")
        sentences.append(f"{rest} {'is' if rest.startswith('1 ') else 'are'} related more weakly than these.")
    alone = [
        name for place, name in enumerate(names) if np.abs(np.delete(correlations[place], place)).max() < WEAK
    ]
    if alone:
        sentences.append(
            f"{quoted(alone, most=PAIRS)} {'keeps to itself' if len(alone) == 1 else 'keep to themselves'}."
        )
    return sentences


def _pair_in_words(first: str, second: str, value: float) -> str:
    strength = "strongly" if abs(value) >= STRONG else "somewhat"
    way = "move together" if value > 0 else "move against each other"
    return f"'{first}' and '{second}' {strength} {way} (correlation {value:+.2f} in the kernel)."
