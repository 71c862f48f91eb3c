"""Feature maps: transformers whose features a kernel is linear in."""

from .evidence import tune_kernel
from .kernel_features import EvidenceFeatures, GaussianFeatures
from .maps import (
    default_feature_maps,
    fit_feature_map,
    found_noise,
    is_fitted,
    map_features,
    needs_targets,
    warm_start,
)
from .operator_fourier import OperatorFourierFeatures

__all__ = [
    "EvidenceFeatures",
    "GaussianFeatures",
    "OperatorFourierFeatures",
    "default_feature_maps",
    "fit_feature_map",
    "found_noise",
    "is_fitted",
    "map_features",
    "needs_targets",
    "tune_kernel",
    "warm_start",
]
