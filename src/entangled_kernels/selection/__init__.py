"""Choosing feature maps, kernels and alphas by cross-validation.

Candidates -> a fold for every split, and held-out errors of all candidates on it -> weights of the
candidates of every feature map -> shares of the maps, by held-out predictions -> what is kept,
fitted on all rows.
"""

from .candidates import GRID, PATH_STEPS, Grid, Member, grid_members
from .folds import Fold, Split
from .row_splits import check_splits, group_splits, split_rows, time_splits
from .search import (
    SCORINGS,
    SELECTIONS,
    Candidate,
    HeldOutPredictions,
    SearchSettings,
    Selected,
    TargetUnits,
    UsedMap,
    fitted_in_folds,
    scale_weights,
    search_moments,
    search_rows,
    weight_unit,
)

__all__ = [
    "GRID",
    "PATH_STEPS",
    "SCORINGS",
    "SELECTIONS",
    "Candidate",
    "Fold",
    "Grid",
    "HeldOutPredictions",
    "Member",
    "SearchSettings",
    "Selected",
    "Split",
    "TargetUnits",
    "UsedMap",
    "check_splits",
    "fitted_in_folds",
    "grid_members",
    "group_splits",
    "scale_weights",
    "search_moments",
    "search_rows",
    "split_rows",
    "time_splits",
    "weight_unit",
]
