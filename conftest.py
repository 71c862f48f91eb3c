"""Settings for the whole test run."""

import os

# scikit-learn's estimator checks leave out array-API input unless this is set before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
