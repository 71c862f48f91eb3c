"""Windows of a time series: what is known of every variable before the next step."""

from __future__ import annotations

import numpy as np

from ..linalg import Array

__all__ = ["lag_windows"]


def lag_windows(series: Array, lags: int) -> Array:
    """Windows (t - lags + 1, p, lags) of a series (t, p), the most recent step first.

    Window i ends at row i + lags - 1; the last one has no next step yet.

    Examples
    --------
    >>> import numpy as np
    >>> lag_windows(np.arange(8.0).reshape(4, 2), 2)[0]
    array([[2., 0.],
           [3., 1.]])
    """
    count = len(series) - lags + 1
    return np.stack([series[lags - 1 - lag : lags - 1 - lag + count] for lag in range(lags)], axis=2)
