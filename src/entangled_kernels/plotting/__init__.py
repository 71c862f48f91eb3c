"""Displays of kernels, models and results, and a self-contained HTML page.

Displays need the extra ``plot`` (matplotlib), pages the extra ``cli`` (Jinja2). Both are imported
when something is drawn or written.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison import ComparisonDisplay, RunningTimeDisplay
    from .kernel import EntanglementSpectrumDisplay, GramDisplay
    from .page import Report
    from .projection import ProjectionDisplay
    from .relations import ExplanationDisplay, InformationDisplay
    from .selection import AlignmentPathDisplay, HeldOutDisplay, SelectionDisplay

__all__ = [
    "AlignmentPathDisplay",
    "ComparisonDisplay",
    "EntanglementSpectrumDisplay",
    "ExplanationDisplay",
    "GramDisplay",
    "HeldOutDisplay",
    "InformationDisplay",
    "ProjectionDisplay",
    "Report",
    "RunningTimeDisplay",
    "SelectionDisplay",
]

# Imported on first access, because the command line uses `cells` without scikit-learn.
_MODULES = ("comparison", "kernel", "page", "projection", "relations", "selection")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            value = getattr(_import_module(f".{module}", __name__), name, None)
            if value is not None:
                return globals().setdefault(name, value)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
