"""Gradients by differences, one input after the other."""

import numpy as np


def central_differences(function, X, step=1e-3):
    """Slopes (n, q, d) of a function that gives (n, q) for rows (n, d), from four points for each input."""
    columns = []
    for column in range(X.shape[1]):
        moved = np.zeros(X.shape[1])
        moved[column] = step
        near, far = (function(X + moved * k) - function(X - moved * k) for k in (1, 2))
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.stack(columns, axis=2)
