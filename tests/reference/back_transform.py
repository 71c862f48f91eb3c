"""Laws of functions of normal variables, by sums over fine grids."""

import numpy as np

# Far enough for functions that grow like exp(2 z) of a unit normal.
GRID = np.linspace(-12, 12, 1201)
DENSITY = np.exp(-(GRID**2) / 2) / np.sqrt(2 * np.pi) * (GRID[1] - GRID[0])


def moments(function, mean, std):
    """Mean and standard deviation of function(z), z normal."""
    values = function(mean + std * GRID)
    centre = DENSITY @ values
    return centre, np.sqrt(DENSITY @ (values - centre) ** 2)


def covariance(first, second, mean, covariance):
    """Covariance of first(z_0) and second(z_1), z normal."""
    std = np.sqrt(np.diag(covariance))
    R = covariance[0, 1] / std[0] / std[1]
    x, y = np.meshgrid(GRID, GRID, indexing="ij")
    values = first(mean[0] + std[0] * x), second(mean[1] + std[1] * (R * x + np.sqrt(1 - R**2) * y))
    weight = np.outer(DENSITY, DENSITY)
    means = [np.sum(weight * own) for own in values]
    return np.sum(weight * (values[0] - means[0]) * (values[1] - means[1]))
