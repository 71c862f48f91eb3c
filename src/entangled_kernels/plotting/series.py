"""Records of results as curves: the centre and the spread of a metric, for every setting and method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

if TYPE_CHECKING:
    from ..storage import ExperimentResults

__all__ = ["METRICS", "SETTINGS", "Series", "Spread", "mean_interval", "median_range", "series_of"]

Array = NDArray[np.float64]
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


@dataclass(frozen=True, eq=False)
class Series:
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
    groups: dict[Any, dict[str, dict[Any, list[float]]]] = {}
    for record in results.records:
        if record.get(metric) is None or record.get(x) is None:
            continue
        missing = [key for key in (hue, facet) if key is not None and key not in record]
        if missing:
            raise ValueError(f"records have no {missing[0]!r}; they have {sorted(record)}")
        curves = groups.setdefault(_value(record, facet), {})
        curve = curves.setdefault(_name(record, hue, metric), {})
        curve.setdefault(record[x], []).append(float(record[metric]))
    if not groups:
        raise ValueError(f"no record has both the metric {metric!r} and the setting {x!r}")
    paper: dict[Any, dict[str, dict[Any, float]]] = {}
    for record in results.paper:
        if record.get(metric) is not None and record.get(x) is not None:
            curves_of_paper = paper.setdefault(_value(record, facet), {})
            curve_of_paper = curves_of_paper.setdefault(_name(record, hue, metric), {})
            curve_of_paper[record[x]] = float(record[metric])
    return {
        panel: [
            _series(name, curve, paper.get(panel, {}).get(name, {}), spread) for name, curve in curves.items()
        ]
        for panel, curves in groups.items()
    }


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


def _value(record: dict[str, Any], key: str | None) -> Any:
    return None if key is None else record.get(key)


def _name(record: dict[str, Any], hue: str | None, metric: str) -> str:
    return metric if hue is None else str(record.get(hue))


def _series(
    name: str, curve: dict[Any, list[float]], paper: dict[Any, float], spread: Callable[[Array], Spread]
) -> Series:
    settings = list(curve)
    if all(isinstance(setting, int | float) for setting in settings):
        settings.sort()
    spreads = np.array([spread(np.asarray(curve[setting])) for setting in settings])
    return Series(name, settings, spreads[:, 0], spreads[:, 1], spreads[:, 2], paper)
