"""Tables whose rows are steps in time, and the network that an autoregression finds in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import TableError, read_table, require_columns, require_numbers
from ..tables.phrases import quoted
from .errors import CommandError
from .screen import Screen
from .training_table import TrainingTable, expand_names

__all__ = ["network_frame", "read_series", "show_network"]

# Influences to show.
SHOWN = 12


def read_series(path: Path, columns: Sequence[str] | None, option: str | None) -> TrainingTable:
    """Read a table of steps; inputs and targets are the same columns.

    Parameters
    ----------
    path : path
    columns : sequence of str or None
        Names or patterns; None is all that hold numbers, with a note about the others.
    option : str or None
        What columns were named with, for errors; None where a model names them.
    """
    frame, notes = read_table(path), list[str]()
    have = [str(name) for name in frame.columns]
    if columns is None:
        other = [name for name in have if frame[name].dtype.kind not in "biuf"]
        names = [name for name in have if name not in other and name != ""]
        if other:
            notes.append(f"left out, since they hold no numbers: {quoted(other)}")
    else:
        names = list(columns) if option is None else expand_names(columns, have, option)
        try:
            require_columns(frame, names, path)
        except TableError as error:
            if option is None:
                raise
            raise CommandError(str(error)) from error
    if not names:
        raise TableError(path, "no column holds numbers; a series needs at least one")
    numbers = require_numbers(frame, names, path, way_out="; a series needs a number at every step")
    return TrainingTable(names, names, [], numbers, numbers, None, notes)


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
