"""Feature maps: transformers whose features a kernel is linear in."""

from .evidence import tune_kernel
from .kernel_features import EvidenceFeatures, GaussianFeatures, median_distance
from .maps import (
    default_feature_maps,
    fit_feature_map,
    found_noise,
    is_fitted,
    map_features,
    needs_targets,
    warm_start,
)

__all__ = [
    "EvidenceFeatures",
    "GaussianFeatures",
    "default_feature_maps",
    "fit_feature_map",
    "found_noise",
    "is_fitted",
    "map_features",
    "median_distance",
    "needs_targets",
    "tune_kernel",
    "warm_start",
]
