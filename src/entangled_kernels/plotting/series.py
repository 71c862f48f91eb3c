"""Records of results as curves: the centre and the spread of a metric, for every setting and method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import t

from ..linalg import Array

if TYPE_CHECKING:
    from ..storage import ExperimentResults, Record

__all__ = [
    "METRICS",
    "SETTINGS",
    "Series",
    "Spread",
    "in_order",
    "mean_interval",
    "median_range",
    "series_of",
]

Spread = tuple[float, float, float]

# What axes say of the keys of records.
METRICS = {
    "nmse": "nMSE (share of the variance missed)",
    "ni": "nI (improvement over kernel ridge)",
    "accuracy": "accuracy (share of samples)",
    "alignment": "alignment with the targets (0 to 1)",
    "fit_seconds": "time to fit (seconds)",
    "predict_seconds": "time to predict (seconds)",
}
SETTINGS = {
    "n": "training samples, n",
    "p": "outputs, p",
    "m": "features, m",
    "rank": "Kraus rank, r",
    "known": "targets measured",
    "task": "task",
    "method": "method",
    "split": "split",
}


class Series(NamedTuple):
    """One curve.

    Attributes
    ----------
    name : str
    x : list
        Settings, numbers in increasing order.
    centre, low, high : ndarray
        The metric at each of them.
    paper : dict
        Published figures by setting.
    """

    name: str
    x: list[Any]
    centre: Array
    low: Array
    high: Array
    paper: dict[Any, float]


def series_of(
    results: ExperimentResults,
    x: str,
    metric: str,
    hue: str | None,
    facet: str | None,
    spread: Callable[[Array], Spread],
) -> dict[Any, list[Series]]:
    """Curves of results: for each value of ``facet`` (None without one), one for each value of ``hue``.

    Records without the metric or the setting are left out. Panels and curves come in the order of their
    first record.
    """
    shown = _with_both(results.records, x, metric)
    if not shown:
        raise ValueError(f"no record has both the metric {metric!r} and the setting {x!r}")
    for key in (key for key in (hue, facet) if key is not None):
        lacking = [record for record in shown if key not in record]
        if lacking:
            raise ValueError(f"records have no {key!r}; they have {sorted(lacking[0])}")
    published = _curves(_with_both(results.paper, x, metric), x, metric, hue, facet)
    panels: dict[Any, list[Series]] = {}
    for (panel, name), curve in _curves(shown, x, metric, hue, facet).items():
        paper = {setting: values[-1] for setting, values in published.get((panel, name), {}).items()}
        settings = in_order(curve)
        centre, low, high = np.array([spread(np.asarray(curve[setting])) for setting in settings]).T
        panels.setdefault(panel, []).append(Series(name, settings, centre, low, high, paper))
    return panels


def in_order(settings: Iterable[Any]) -> list[Any]:
    """Distinct settings, numbers in increasing order."""
    distinct = list(dict.fromkeys(settings))
    return sorted(distinct) if all(isinstance(setting, int | float) for setting in distinct) else distinct


def mean_interval(values: Array, level: float = 0.95) -> Spread:
    """Mean and Student's confidence interval of it; of a single value just that.

    Examples
    --------
    >>> [round(value, 3) for value in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    half = float(t.ppf((1.0 + level) / 2.0, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def median_range(values: Array) -> Spread:
    """Median, least and largest."""
    return float(np.median(values)), float(values.min()), float(values.max())


def _curves(
    records: list[Record], x: str, metric: str, hue: str | None, facet: str | None
) -> dict[tuple[Any, str], dict[Any, list[float]]]:
    """Values of the metric by setting, for every panel and name of a curve."""
    curves: dict[tuple[Any, str], dict[Any, list[float]]] = {}
    for record in records:
        panel = None if facet is None else record.get(facet)
        name = metric if hue is None else str(record.get(hue))
        curves.setdefault((panel, name), {}).setdefault(record[x], []).append(float(record[metric]))
    return curves


def _with_both(records: list[Record], x: str, metric: str) -> list[Record]:
    return [record for record in records if record.get(metric) is not None and record.get(x) is not None]
