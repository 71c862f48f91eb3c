"""Errors of targets beside those of kernel ridge."""

from __future__ import annotations

from typing import Any

from .screen import Screen

__all__ = ["change_in_words", "error_rows", "show_target_errors"]


def change_in_words(error: float | None, reference: float | None) -> str:
    """How much less one error is than another.

    Examples
    --------
    >>> change_in_words(0.9, 1.0), change_in_words(1.5, 1.0), change_in_words(None, 1.0)
    ('10.0% less error', '50.0% more error', '-')
    """
    if error is None or reference is None or not reference > 0.0:
        return "-"
    if error > 10.0 * reference:
        return f"{error / reference:.3g} times the error"
    change = 100.0 * (1.0 - error / reference)
    if abs(change) < 0.05:
        return "the same error"
    return f"{abs(change):.1f}% {'less' if change > 0 else 'more'} error"


def error_rows(scores: list[dict[str, Any]]) -> list[list[Any]]:
    """Rows of a table: target, error, error of kernel ridge, change."""
    pairs = [(row["target"], row["nmse"], row["kernel_ridge_nmse"]) for row in scores]
    return [[target, own, ridge, change_in_words(own, ridge)] for target, own, ridge in pairs]


def show_target_errors(screen: Screen, scores: list[dict[str, Any]]) -> None:
    """Print the table, if there is anything to show."""
    if scores:
        title = "Held-out error of each target with the settings chosen"
        screen.table(["target", "nMSE", "kernel ridge", "change"], error_rows(scores), title=title)
