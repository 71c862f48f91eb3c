"""Feature maps: transformers whose features a kernel is linear in."""

from .column_widths import ColumnWidthFeatures
from .evidence import tune_kernel
from .forest_features import ForestFeatures
from .kernel_features import EvidenceFeatures, GaussianFeatures, median_distance
from .maps import (
    default_feature_maps,
    fit_and_map,
    fit_feature_map,
    found_noise,
    interpolates,
    is_cross_fitted,
    is_exact,
    is_fitted,
    knows_targets,
    left_out_features,
    map_features,
    needs_targets,
    noise_features,
    refuse_in_batches,
    suits,
    warm_start,
)
from .operator_fourier import OperatorFourierFeatures
from .regressor_features import RegressorFeatures
from .target_processes import TargetProcessFeatures

__all__ = [
    "ColumnWidthFeatures",
    "EvidenceFeatures",
    "ForestFeatures",
    "GaussianFeatures",
    "OperatorFourierFeatures",
    "RegressorFeatures",
    "TargetProcessFeatures",
    "default_feature_maps",
    "fit_and_map",
    "fit_feature_map",
    "found_noise",
    "interpolates",
    "is_cross_fitted",
    "is_exact",
    "is_fitted",
    "knows_targets",
    "left_out_features",
    "map_features",
    "median_distance",
    "needs_targets",
    "noise_features",
    "refuse_in_batches",
    "suits",
    "tune_kernel",
    "warm_start",
]
