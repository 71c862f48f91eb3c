"""Whether the kernel of a model is entangled."""

from __future__ import annotations

from typing import Any

from ..estimators import EntangledKernelRidge, OutputKernelRidge, OutputKernelRidgeCV

__all__ = ["entanglement_of", "measures_in_words", "verdict_kind"]

# The test works on matrices of this many rows, features times targets, and takes the third power of it.
LARGEST = 3000
MEASURES = ("ppt", "lowest_eigenvalue", "negativity", "realignment", "schmidt_entropy", "separable_share")


def entanglement_of(model: Any) -> dict[str, Any]:
    """Verdict, and the numbers behind it where the kernel is small enough to be tested."""
    if isinstance(model, OutputKernelRidge | OutputKernelRidgeCV):
        verdict = "Separable: one scalar kernel times one learned output matrix."
        return {"entangled": False, "verdict": verdict, "entanglement": None}
    if not isinstance(model, EntangledKernelRidge):
        verdict = "Not tested: the kernel was given, not learned."
        return {"entangled": None, "verdict": verdict, "entanglement": None}
    size = model.coef_.size
    if size > LARGEST:
        verdict = f"Not tested: features times targets are {size}, and the test is for up to {LARGEST}."
        return {"entangled": None, "verdict": verdict, "entanglement": None}
    found = model.kernel_.entanglement()
    numbers = {name: getattr(found, name) for name in MEASURES}
    return {"entangled": found.entangled, "verdict": found.verdict, "entanglement": numbers}


def measures_in_words(measures: dict[str, Any]) -> dict[str, str]:
    """Measures with names and values to show; a negative zero is a zero."""
    return {
        "PPT" if name == "ppt" else name.replace("_", " "): ("holds" if value else "fails")
        if isinstance(value, bool)
        else f"{value + 0.0:.4g}"
        for name, value in measures.items()
    }


def verdict_kind(entangled: bool | None) -> str:
    """Which sign a verdict gets on a page."""
    return {True: "entangled", False: "separable", None: "plain"}[entangled]
