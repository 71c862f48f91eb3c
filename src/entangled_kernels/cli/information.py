"""What measuring one target tells about the others, in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import Array
from ..tables.phrases import counted

__all__ = ["information_in_words", "information_of"]

# Shares below this are not worth a sentence.
WEAK = 0.05
PAIRS = 5


def information_of(model: Any) -> Array | None:
    """The `information_` of a model; None where it has none, as models without calibration do."""
    try:
        information = getattr(model, "information_", None)
    except ValueError:
        return None
    return None if information is None else np.asarray(information)


def information_in_words(information: Array | None, names: list[str]) -> list[str]:
    """Sentences about the strongest pairs; that nothing tells anything, where this is so.

    Examples
    --------
    >>> information_in_words(np.array([[1.0, 0.61], [0.61, 1.0]]), ["zinc", "cadmium"])
    ["Measuring 'zinc' removes 61% of the uncertainty of 'cadmium', and the other way round."]
    """
    if information is None:
        return ["Not known: the model keeps no errors of rows that it has not seen."]
    if len(names) == 1:
        return ["There is one target, and no other that could tell about it."]
    rows, columns = np.triu_indices(len(names), 1)
    values = np.maximum(information[rows, columns], information[columns, rows])
    order = np.argsort(-values, kind="stable")
    told = [place for place in order if values[place] >= WEAK]
    if not told:
        return [
            f"Nothing tells anything: beyond what the inputs say, measuring a target removes no more than "
            f"{values.max():.0%} of the uncertainty of any other."
        ]
    sentences = [
        _pair_in_words(information, names, int(rows[place]), int(columns[place])) for place in told[:PAIRS]
    ]
    if len(told) > PAIRS:
        rest = counted(len(told) - PAIRS, "further pair")
        verb = "tells" if rest.startswith("1 ") else "tell"
        sentences.append(f"{rest} {verb} less about each other, but at least {WEAK:.0%}.")
    return sentences


def _pair_in_words(information: Array, names: list[str], first: int, second: int) -> str:
    there, back = information[first, second], information[second, first]
    if back > there:
        first, second, there, back = second, first, back, there
    other = "" if round(there, 2) != round(back, 2) else ", and the other way round"
    return f"Measuring '{names[first]}' removes {there:.0%} of the uncertainty of '{names[second]}'{other}."
