"""Metadata routing of searches: groups go to the splitter that asks for them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.model_selection import GroupKFold
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping

__all__ = ["SplitRoutingMixin"]


class SplitRoutingMixin:
    """Groups of an estimator with a parameter ``cv``, which are the splitter's to ask for, as in `RidgeCV`.

    A nested cross-validation with groups needs no ``set_fit_request``: splitters such as `GroupKFold` ask for
    them by themselves, and so does a number of folds, which are of whole groups where these are given.
    """

    cv: Any

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012 (scikit-learn reads it from the class)

    def get_metadata_routing(self) -> MetadataRouter:
        """What `fit` takes itself, and what it hands to the splitter."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        splitter = GroupKFold() if self.cv is None or isinstance(self.cv, Integral) else self.cv
        if hasattr(splitter, "get_metadata_routing"):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=splitter, method_mapping=mapping)
        return router
