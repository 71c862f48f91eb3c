"""Settings that must come before the first import of SciPy, and the profile of the property tests."""

import os

from hypothesis import settings

# scikit-learn's check of array inputs is skipped unless SciPy is told to look at array types.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# No deadlines, because a busy machine is no failure, and the same examples in every run.
settings.register_profile("house", deadline=None, derandomize=True)
# A wider search, for development: HYPOTHESIS_PROFILE=search.
settings.register_profile("search", deadline=None, max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
