"""Settings that must come before the first import of SciPy."""

import os

# scikit-learn's check of array inputs is skipped unless SciPy is told to look at array types.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
