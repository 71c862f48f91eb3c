"""Feature maps: transformers whose features a kernel is linear in."""

from .evidence import median_distance, tune_kernel
from .forest import ForestFeatures
from .kernel_maps import ColumnWidthFeatures, EvidenceFeatures
from .maps import (
    FeatureMapTraits,
    default_feature_maps,
    fit_and_map,
    fit_feature_map,
    is_fitted,
    map_features,
    warm_start,
)
from .operator_fourier import OperatorFourierFeatures
from .target_processes import TargetProcessFeatures

__all__ = [
    "ColumnWidthFeatures",
    "EvidenceFeatures",
    "FeatureMapTraits",
    "ForestFeatures",
    "OperatorFourierFeatures",
    "TargetProcessFeatures",
    "default_feature_maps",
    "fit_and_map",
    "fit_feature_map",
    "is_fitted",
    "map_features",
    "median_distance",
    "tune_kernel",
    "warm_start",
]
