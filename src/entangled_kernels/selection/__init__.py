"""Choosing feature maps, kernels and alphas by cross-validation.

Every split gives a fold, on which the errors of all candidates are measured. The errors give
weights to the candidates of a feature map; held-out predictions give shares to the maps. What is
kept is fitted on all rows.
"""

from .candidates import GRID, PATH_STEPS, grid_settings
from .folds import Fold, Split, check_splits, group_splits, split_rows, time_splits
from .search import (
    SCORINGS,
    SELECTIONS,
    Candidate,
    SearchResults,
    SearchSettings,
    Selected,
    scale_weights,
    search_moments,
    search_rows,
)

__all__ = [
    "GRID",
    "PATH_STEPS",
    "SCORINGS",
    "SELECTIONS",
    "Candidate",
    "Fold",
    "SearchResults",
    "SearchSettings",
    "Selected",
    "Split",
    "check_splits",
    "grid_settings",
    "group_splits",
    "scale_weights",
    "search_moments",
    "search_rows",
    "split_rows",
    "time_splits",
]
