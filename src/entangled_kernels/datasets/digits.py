"""Handwritten digits as related tasks: one target for each digit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from .bunch import make_bunch

__all__ = ["load_digit_tasks"]

DESCR = """Digit tasks
===========

Images of handwritten digits, 8 x 8 pixels scaled to [0, 1], from the test part of the UCI "Optical
Recognition of Handwritten Digits" set as scikit-learn ships it. Every digit is a task: its target
is +1 for images of it and -1 for the others.
"""


def load_digit_tasks(n_digits: int = 4, *, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Images of the first digits, and one target of -1 or +1 for each digit.

    Parameters
    ----------
    n_digits : int, default=4
        Number of digits, from 2 to 10; 2 are the digits 0 and 1.
    as_frame : bool, default=False
        Give data frames.
    return_X_y : bool, default=False
        Give ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` (n, 64), ``target`` (n, n_digits), ``labels`` (n,), ``images`` (n, 8, 8),
        ``feature_names``, ``target_names``, ``frame`` and ``DESCR``.

    Examples
    --------
    >>> from entangled_kernels.datasets import load_digit_tasks
    >>> digits = load_digit_tasks()
    >>> digits.data.shape, digits.target.shape
    ((720, 64), (720, 4))
    >>> digits.target[0]
    array([ 1., -1., -1., -1.])
    """
    if not 2 <= n_digits <= 10:
        raise ValueError(f"n_digits must be from 2 to 10, got {n_digits!r}")
    digits = load_digits(n_class=n_digits)
    return make_bunch(
        digits.data / 16.0,
        np.where(digits.target[:, None] == np.arange(n_digits), 1.0, -1.0),
        [str(name) for name in digits.feature_names],
        [f"is {digit}" for digit in range(n_digits)],
        DESCR,
        as_frame=as_frame,
        return_X_y=return_X_y,
        labels=digits.target,
        images=digits.images / 16.0,
    )
