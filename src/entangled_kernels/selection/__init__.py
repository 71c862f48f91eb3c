"""Choosing settings by cross-validation, from the moments of folds.

Candidates -> folds -> errors on each fold -> a search over all, for every feature map -> a decision, with
weights of the candidates in an average of each search -> shares of the searches, by their errors on held-out
rows -> what was decided, fitted on all rows.
"""

from .blank_folds import BlankFolds
from .candidates import GRID, PATH_STEPS, Member, grid_members
from .decision import Decision, average_candidates, decide, refit
from .folds import MomentFolds, RefittedFolds, RowFolds, Split, group_partitions
from .out_of_fold import HeldOutPredictions, ModelPredictions, predict_held_out
from .row_splits import group_splits, time_splits
from .search import SCORINGS, Choice, Search, SearchSettings, TableSummary, run_search
from .stacking import settle

__all__ = [
    "GRID",
    "PATH_STEPS",
    "SCORINGS",
    "BlankFolds",
    "Choice",
    "Decision",
    "HeldOutPredictions",
    "Member",
    "ModelPredictions",
    "MomentFolds",
    "RefittedFolds",
    "RowFolds",
    "Search",
    "SearchSettings",
    "Split",
    "TableSummary",
    "average_candidates",
    "decide",
    "grid_members",
    "group_partitions",
    "group_splits",
    "predict_held_out",
    "refit",
    "run_search",
    "settle",
    "time_splits",
]
