"""Multi-output kernel regression with entangled operator-valued kernels."""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators import (
        EntangledKernelClassifier,
        EntangledKernelRidge,
        EntangledKernelRidgeCV,
        MultipleKernelRidge,
        MultiViewKernelClassifier,
        MultiViewKernelRidge,
        OperatorFourierRidge,
        OperatorKernelVAR,
        OperatorValuedKernelRidge,
        OutputKernelRidge,
        OutputKernelRidgeCV,
    )
    from .features import (
        ColumnWidthFeatures,
        EvidenceFeatures,
        ForestFeatures,
        OperatorFourierFeatures,
        TargetProcessFeatures,
    )

__all__ = [
    "ColumnWidthFeatures",
    "EntangledKernelClassifier",
    "EntangledKernelRidge",
    "EntangledKernelRidgeCV",
    "EvidenceFeatures",
    "ForestFeatures",
    "MultiViewKernelClassifier",
    "MultiViewKernelRidge",
    "MultipleKernelRidge",
    "OperatorFourierFeatures",
    "OperatorFourierRidge",
    "OperatorKernelVAR",
    "OperatorValuedKernelRidge",
    "OutputKernelRidge",
    "OutputKernelRidgeCV",
    "TargetProcessFeatures",
    "__version__",
]

__version__ = "0.1.0"

# Rooms that hold the public names, imported when one of them is asked for: the command shows its
# help without waiting for scikit-learn.
_ROOMS = ("features", "estimators")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            found = getattr(_import_module(f".{room}", __name__), name, None)
            if found is not None:
                return globals().setdefault(name, found)
    if not name.startswith("_") and _find_spec(f"{__name__}.{name}") is not None:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
