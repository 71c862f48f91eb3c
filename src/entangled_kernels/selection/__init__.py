"""Choosing settings by cross-validation, from the moments of folds.

Candidates -> folds -> errors on each fold -> a search over all -> a decision, with weights of the candidates
in an average -> what was decided, fitted on all rows.
"""

from .blank_folds import BlankFolds
from .candidates import PATH_STEPS, Member, grid_members
from .decision import Decision, average_candidates, average_weights, decide, refit
from .folds import MomentFolds, RefittedFolds, RowFolds, Split, group_partitions
from .out_of_fold import HeldOutPredictions, predict_held_out
from .search import SCORINGS, Choice, Search, SearchSettings, TableSummary, run_search

__all__ = [
    "PATH_STEPS",
    "SCORINGS",
    "BlankFolds",
    "Choice",
    "Decision",
    "HeldOutPredictions",
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
    "decide",
    "grid_members",
    "group_partitions",
    "predict_held_out",
    "refit",
    "run_search",
]
