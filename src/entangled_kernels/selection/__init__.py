"""Choosing settings by cross-validation, from the moments of folds.

Candidates -> folds -> errors on each fold -> a search over all -> weights of the candidates in an average.
"""

from .candidates import PATH_STEPS, Member, grid_members
from .folds import MomentFolds, RefittedFolds, RowFolds, Split, group_partitions
from .search import (
    SCORINGS,
    Choice,
    Search,
    SearchSettings,
    TableSummary,
    average_candidates,
    average_weights,
    run_search,
)

__all__ = [
    "PATH_STEPS",
    "SCORINGS",
    "Choice",
    "Member",
    "MomentFolds",
    "RefittedFolds",
    "RowFolds",
    "Search",
    "SearchSettings",
    "Split",
    "TableSummary",
    "average_candidates",
    "average_weights",
    "grid_members",
    "group_partitions",
    "run_search",
]
