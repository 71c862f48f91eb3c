"""Tables in the form of scikit-learn's loaders."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

__all__ = ["make_bunch"]


def make_bunch(
    data: ArrayLike,
    target: ArrayLike,
    feature_names: list[str],
    target_names: list[str],
    DESCR: str,
    *,
    as_frame: bool = False,
    return_X_y: bool = False,
    index: list[str] | None = None,
    **more: Any,
) -> Any:
    """``(data, target)``, or a Bunch with these, ``frame``, names, DESCR and ``more``."""
    X: Any = np.asarray(data, dtype=np.float64)
    Y: Any = np.asarray(target, dtype=np.float64)
    frame = None
    if as_frame:
        X, Y = _frame(X, feature_names, index), _frame(Y, target_names, index)
        frame = X.join(Y) if not set(feature_names) & set(target_names) else None
    if return_X_y:
        return X, Y
    return Bunch(
        data=X,
        target=Y,
        frame=frame,
        DESCR=DESCR,
        feature_names=feature_names,
        target_names=target_names,
        **more,
    )


def _frame(values: NDArray[np.float64], columns: list[str], index: list[str] | None) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'as_frame=True needs pandas: pip install "entangled-kernels[data]"'
        ) from error
    return pd.DataFrame(values, columns=columns, index=index)
