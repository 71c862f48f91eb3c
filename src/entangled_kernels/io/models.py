"""Fitted models as files that run no code when they are loaded.

A model file is a sealed file (`entangled_kernels.files`) whose payload is a `skops
<https://skops.readthedocs.io>`_ archive, arrays and JSON. Its header holds the class, versions of
the software that wrote it, and information of the caller. Only classes from a short list of modules
are made into objects.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import platform
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED

import numpy as np

from ..files import check_expansion, read_sealed, write_sealed

__all__ = [
    "ModelFileError",
    "SavedModel",
    "load_model",
    "open_model",
    "save_model",
    "software_versions",
]

FORMAT = 3
# Name of the list of arrays in an archive, and fitted attributes that must be finite.
ARRAYS, FITTED = "arrays.json", ("coef_", "intercept_", "dual_coef_")
# The module of the estimators that can be saved.
ESTIMATORS = "entangled_kernels.estimators"
# Modules whose classes a model may hold, besides the estimators of scikit-learn and their parts, which
# skops knows.
KNOWN = (
    ESTIMATORS,
    "entangled_kernels.convex",
    "entangled_kernels.features",
    "entangled_kernels.kernels",
    "entangled_kernels.learning",
    "entangled_kernels.linalg",
    "entangled_kernels.model",
    "entangled_kernels.selection",
    "entangled_kernels.streams.row_stream",
    "entangled_kernels.uncertainty",
    "sklearn.compose._column_transformer",
    "sklearn.gaussian_process.kernels",
    "sklearn.model_selection._split",
)
# A dtype, which imputers of scikit-learn have; skops makes it from an empty array.
KNOWN_TYPES = ("numpy.dtype",)
# Packages that a model or a result depends on.
PACKAGES = ("entangled-kernels", "numpy", "scipy", "scikit-learn")


class ModelFileError(ValueError):
    """A model file that is damaged, of another kind, too new, or holds untrusted types."""


class EditedError(ValueError):
    """A file whose arrays were changed after it was written."""


class SavedModel(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    model : estimator
    info : dict
        The argument of `save_model`.
    software : dict of str
        Versions of the packages that wrote the file.
    """

    model: Any
    info: dict[str, Any]
    software: dict[str, str]


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    info: dict[str, Any] | None = None,
    trusted: Sequence[str] = (),
) -> None:
    """Write a fitted model, with its feature map, to a file that runs no code when it is loaded.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.
    path : path
        Replaced only once the new file is complete and on the disk.
    info : dict, optional
        Anything that JSON can hold; `open_model` returns it.
    trusted : sequence of str, optional
        Full names of further classes that the feature map uses, such as
        ``"mypackage.MyTransformer"``. Those of scikit-learn and of this package are known.
        `load_model` needs the same list.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidge
    >>> from entangled_kernels.io import load_model, save_model
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidge().fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/exercise.model")
    ...     same = load_model(f"{folder}/exercise.model")
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    if not _is_model(model):
        raise TypeError(
            f"model must be an estimator of entangled-kernels, such as EntangledKernelRidge, got "
            f"{type(model).__name__}"
        )
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    # After partial_fit the model is solved on first use.
    if hasattr(model, "solve"):
        model.solve()
    if wrong := _not_finite(model):
        raise ValueError(
            f"model has NaN or infinity in {wrong}, so it cannot predict; fit it again"
        )
    header = {
        "format": FORMAT,
        "class": type(model).__name__,
        "software": software_versions("skops"),
        "info": info or {},
    }
    write_sealed(path, "model", header, _pack(model, trusted))


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read the model that `save_model` wrote.

    With the same versions of the software, predictions are the same to the last bit.

    Parameters
    ----------
    path : path
    trusted : sequence of str, optional
        Full names of further classes, as in `save_model`.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another kind or of a newer format, or holds types that are not
        trusted.
    OSError
        If there is no such file, or it cannot be read.
    """
    return open_model(path, trusted=trusted).model


def open_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> SavedModel:
    """Read a model as `load_model`, with the information and versions saved with it."""
    header, payload = read_sealed(path, "model", FORMAT, ModelFileError)
    info, software = header.get("info", {}), header.get("software", {})
    if not (isinstance(info, dict) and isinstance(software, dict)):
        raise ModelFileError(
            f"{path} is not a model file of entangled-kernels: its header has another layout"
        )
    software = {str(name): str(version) for name, version in software.items()}
    return SavedModel(_unpack(path, software, payload, trusted), info, software)


def software_versions(*more: str) -> dict[str, str]:
    """Versions of Python, and of the core and the named packages that are installed."""
    versions = {"python": platform.python_version()}
    for package in (*PACKAGES, *more):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _is_model(model: Any) -> bool:
    from sklearn.base import BaseEstimator

    return isinstance(model, BaseEstimator) and type(model).__module__.startswith(f"{ESTIMATORS}.")


def _pack(model: Any, trusted: Sequence[str]) -> bytes:
    skops = _skops()
    payload: bytes = skops.dumps(model, compression=ZIP_DEFLATED)
    try:
        check_expansion(payload)
    except ValueError:
        payload = skops.dumps(model, compression=ZIP_STORED)
    _, unknown = _types(skops, payload, trusted)
    if unknown:
        raise TypeError(
            f"model holds types that would not be loaded again: {', '.join(unknown)}; name them in "
            f"trusted=, here and when loading, if you trust them"
        )
    return list_arrays(payload)


def list_arrays(payload: bytes) -> bytes:
    """Add a list of its arrays to an archive, for a check when it is read."""
    archive = io.BytesIO(payload)
    with zipfile.ZipFile(archive, "a", ZIP_DEFLATED) as file:
        file.writestr(ARRAYS, json.dumps(_arrays(file)))
    return archive.getvalue()


def _arrays(archive: zipfile.ZipFile) -> dict[str, list[Any]]:
    """Type, shape and number of NaN or infinite values of each array in an archive."""
    facts = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            values = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            odd = int((~np.isfinite(values)).sum()) if values.dtype.kind in "fc" else 0
            facts[name] = [values.dtype.str, list(values.shape), odd]
    return facts


def _check_arrays(payload: bytes) -> bool:
    """Raise unless the arrays of an archive are as listed in it; False if there is no list.

    An array that was edited, in a file that was sealed again, is refused before any object is made.
    """
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        if ARRAYS not in archive.namelist():
            return False
        arrays, listed = _arrays(archive), json.loads(archive.read(ARRAYS))
    if arrays.keys() != listed.keys():
        raise EditedError("arrays were added or removed")
    for name, (kind, shape, odd) in arrays.items():
        old_kind, old_shape, old_odd = listed[name]
        if [kind, shape] != [old_kind, old_shape]:
            raise EditedError(
                f"array {name} is {kind} of shape {tuple(shape)}, and was {old_kind} of shape "
                f"{tuple(old_shape)}"
            )
        if odd != old_odd:
            raise EditedError(
                f"array {name} has {odd} values of NaN or infinity, and had {old_odd}"
            )
    return True


def _not_finite(model: Any) -> str | None:
    """The first fitted attribute of a model that has NaN or infinity."""
    for name in FITTED:
        values = getattr(model, name, None)
        if isinstance(values, np.ndarray | float) and not np.isfinite(values).all():
            return name
    return None


def _unpack(path: Any, software: dict[str, str], payload: bytes, trusted: Sequence[str]) -> Any:
    skops = _skops()
    try:
        check_expansion(payload)
        listed = _check_arrays(payload)
        known, unknown = _types(skops, payload, trusted)
        if not (listed or unknown):
            raise EditedError("it has no list of its arrays")
        model = None if unknown else skops.loads(payload, trusted=known)
        if _is_model(model):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
            if wrong := _not_finite(model):
                raise EditedError(f"{wrong} has NaN or infinity")
            if model is not None and hasattr(model, "model_"):
                try:
                    model.model_.check_arrays()
                except ValueError as error:
                    raise EditedError(str(error)) from error
    except EditedError as error:
        raise ModelFileError(f"{path} was edited after it was written: {error}") from None
    # A crafted archive may raise any error, running out of stack or memory included.
    except Exception as error:
        here = software_versions("skops")
        differ = [
            f"{name} {version} (here {here.get(name)})"
            for name, version in software.items()
            if version != here.get(name)
        ]
        raise ModelFileError(
            f"{path} cannot be loaded with the software installed here; it was written with "
            f"{', '.join(differ) or 'the same versions'} ({type(error).__name__}: {error})"
        ) from error
    if unknown:
        raise ModelFileError(
            f"{path} holds types that are not trusted, so nothing was loaded: {', '.join(unknown)}"
        )
    if not _is_model(model):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}, not a model of entangled-kernels"
        )
    return model


def _types(skops: Any, payload: bytes, trusted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Types that skops does not trust: those known or trusted here, and the others."""
    asked = skops.get_untrusted_types(data=payload)
    known = [name for name in asked if name in trusted or _is_known(name)]
    return known, [name for name in asked if name not in known]


def _is_known(name: str) -> bool:
    """Whether a full name is that of a class in a known module; functions are not trusted."""
    module, _, attribute = name.rpartition(".")
    if name in KNOWN_TYPES:
        return True
    if not any(module == known or module.startswith(f"{known}.") for known in KNOWN):
        return False
    try:
        return isinstance(getattr(importlib.import_module(module), attribute, None), type)
    except ImportError:
        return False


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            'models are saved and loaded with skops: pip install "entangled-kernels[persist]"'
        ) from error
    return skops.io
