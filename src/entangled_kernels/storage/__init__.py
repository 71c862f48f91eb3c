"""Files that are written whole or not at all, and that run no code when they are read."""

from .atomic import atomic_write
from .experiment_results import ExperimentResults, Record
from .models import ModelFileError, SavedModel, load_model, open_model, save_model, software_versions

__all__ = [
    "ExperimentResults",
    "ModelFileError",
    "Record",
    "SavedModel",
    "atomic_write",
    "load_model",
    "open_model",
    "save_model",
    "software_versions",
]
