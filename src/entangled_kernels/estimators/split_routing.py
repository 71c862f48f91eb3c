"""Metadata routing of searches: groups go to the splitter that asks for them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.model_selection import GroupKFold
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping

__all__ = ["SplitRoutingMixin", "route_groups"]


def route_groups(estimator: Any) -> MetadataRouter:
    """What ``fit`` of an estimator with a parameter ``cv`` takes itself, and what its splitter gets."""
    router = MetadataRouter(owner=type(estimator).__name__).add_self_request(estimator)
    splitter = GroupKFold() if estimator.cv is None or isinstance(estimator.cv, Integral) else estimator.cv
    if hasattr(splitter, "get_metadata_routing"):
        mapping = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=splitter, method_mapping=mapping)
    return router


class SplitRoutingMixin:
    """Groups of an estimator with a parameter ``cv``, which are the splitter's to ask for, as in `RidgeCV`.

    A nested cross-validation with groups needs no ``set_fit_request``: splitters such as `GroupKFold` ask for
    them by themselves, and so does a number of folds, which are of whole groups where these are given.
    """

    cv: Any

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012 (scikit-learn reads it from the class)

    def get_metadata_routing(self) -> MetadataRouter:
        """What `fit` takes itself, and what it hands to the splitter."""
        return route_groups(self)
