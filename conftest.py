"""Settings for the whole test run."""

import os

from hypothesis import settings

# scikit-learn's estimator checks leave out array-API input unless this is set before SciPy is
# imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Workers share the cores: BLAS threads that wait for each other would keep them busy for nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No deadlines, because a busy machine is no failure, and the same examples in every run.
settings.register_profile("house", deadline=None, derandomize=True)
# A wider search, for development: HYPOTHESIS_PROFILE=search.
settings.register_profile("search", deadline=None, max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
