"""What a comparison of methods says: who wins and how sure that is, methods in rows, partitions far off."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage import ExperimentResults
from .model_words import change_in_words
from .results import REFERENCE, errors_by_split, sure_leads

__all__ = ["far_off_splits", "method_table", "winner_in_words"]

# A partition whose error is so many times the median of the others is far off.
FAR_OFF = 3.0
NMSE, SECONDS = "nmse", "fit_seconds"


def winner_in_words(results: ExperimentResults) -> str:
    """One sentence on the method with the least error at the largest size, whatever it is; empty without."""
    settings = errors_by_split(results, NMSE)
    if not settings or not results.records or "n" not in results.records[0]:
        return ""
    place, (setting, methods) = list(enumerate(settings.items()))[-1]
    means = {name: float(np.mean(list(errors.values()))) for name, errors in methods.items()}
    order = sorted(means, key=means.__getitem__)
    first, size = order[0], setting[-1]
    words = f"Best with {size} training rows: {first}, nMSE {means[first]:.3f}"
    if len(order) > 1:
        second = order[1]
        sure = (place, first) in sure_leads(results, NMSE)
        lead = f"{change_in_words(means[first], means[second])} than the next, {second}"
        words += f"; {lead}, {'more than chance would give' if sure else 'which may be chance'}"
    if REFERENCE in means and REFERENCE not in order[:2]:
        words += f", and {change_in_words(means[first], means[REFERENCE])} than {REFERENCE}"
    return f"{words}."


def method_table(
    results: ExperimentResults,
) -> tuple[list[str], list[list[Any]], set[tuple[int, str]], dict[str, int]]:
    """Columns, a row for every method, cells whose lead is no chance, and digits of the columns.

    Errors at every size, the change against kernel ridge and the seconds to fit at the largest one; the
    method with the least error there stands first.
    """
    errors, times = errors_by_split(results, NMSE), errors_by_split(results, SECONDS)
    last = list(errors)[-1]
    names = list(dict.fromkeys(name for methods in errors.values() for name in methods))
    names.sort(key=lambda name: float(np.mean(list(errors[last].get(name, {0: np.inf}).values()))))
    columns = ["method", *(f"nMSE, {_size(setting)}" for setting in errors)]
    ridge = errors[last].get(REFERENCE)
    columns += ["against KRR"] * (ridge is not None) + ["seconds to fit"] * bool(times)
    rows = []
    for name in names:
        row: list[Any] = [name, *(_mean_and_spread(methods.get(name)) for methods in errors.values())]
        if ridge is not None:
            own = errors[last].get(name)
            row.append(None if own is None else change_in_words(_mean(own), _mean(ridge)))
        if times:
            own = times.get(last, {}).get(name)
            row.append(None if own is None else _mean(own))
        rows.append(row)
    sure = {(names.index(name), columns[1 + place]) for place, name in sure_leads(results, NMSE)}
    return columns, rows, sure, dict.fromkeys(columns, 3)


def far_off_splits(results: ExperimentResults) -> list[str]:
    """A sentence on every method and size with a partition whose error is far from the others."""
    sentences = []
    for setting, methods in errors_by_split(results, NMSE).items():
        for name, errors in methods.items():
            worst = max(errors, key=errors.__getitem__)
            others = [value for split, value in errors.items() if split != worst]
            if len(others) > 1 and errors[worst] > FAR_OFF * float(np.median(others)):
                sentences.append(
                    f"{name}, {_size(setting)}: partition {worst} has nMSE {errors[worst]:.3g}, the median "
                    f"of the others is {np.median(others):.3g}."
                )
    return sentences


def _size(setting: tuple[Any, ...]) -> str:
    return f"{setting[-1]} rows"


def _mean(errors: dict[Any, float]) -> float:
    return float(np.mean(list(errors.values())))


def _mean_and_spread(errors: dict[Any, float] | None) -> Any:
    """Mean and standard deviation over partitions; a number where there is one partition."""
    if not errors:
        return None
    values = np.array(list(errors.values()))
    return (float(values.mean()), float(values.std(ddof=1))) if len(values) > 1 else float(values[0])
