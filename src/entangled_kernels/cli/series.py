"""The network that an autoregression finds in time series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .screen import Screen

__all__ = ["network_frame", "show_network"]

# Influences to show.
SHOWN = 12


def network_frame(influence: Any, names: Sequence[str]) -> Any:
    """Influences (p, p) as a table: a row for every variable, a column for what acts on it."""
    import pandas as pd

    frame = pd.DataFrame(np.asarray(influence), columns=list(names))
    frame.insert(0, "influence on", list(names), allow_duplicates=True)
    return frame


def show_network(screen: Screen, influence: Any, names: Sequence[str]) -> None:
    """Print which variable acts on which, the strongest first."""
    strength = np.asarray(influence)
    order = np.argsort(-strength, axis=None, kind="stable")[:SHOWN]
    rows = [
        (names[j], names[i], float(strength[i, j]))
        for i, j in zip(*np.unravel_index(order, strength.shape), strict=True)
        if strength[i, j] > 0.0
    ]
    title = "Influences on the next step" + (", the strongest" if strength.size > SHOWN else "")
    screen.table(["of", "on", "strength"], rows, title=title)
