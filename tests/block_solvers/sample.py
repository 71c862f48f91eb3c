"""Points and right-hand sides that the solvers are tried on."""

import numpy as np

from kernels.registry import D, P

rng = np.random.default_rng(5)
X, R = rng.normal(size=(12, D)), rng.normal(size=(12, P, 2))
