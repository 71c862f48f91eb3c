"""Fitted models as files that run no code when they are loaded.

A model file is two lines of text, the model as a `skops <https://skops.readthedocs.io>`_ archive (arrays and
JSON), and the SHA-256 of all that precedes it in its last 32 bytes. The first line is always
``entangled-kernels model``; the second is JSON: the number of the format, the class, versions of the software
that wrote it, and whatever the writer wants to remember. These outlines are the same in every format, so
that any version can tell a damaged file from one that is too new for it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

from sklearn.utils.validation import check_is_fitted

from .estimators import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from .files import atomic_write
from .results import software_versions

__all__ = ["ModelFileError", "SavedModel", "load_model", "open_model", "save_model"]

FORMAT = 1
MAGIC = b"entangled-kernels model\n"
DIGEST = hashlib.sha256().digest_size

MODELS = (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
# Modules whose classes a model may hold; skops knows the estimators of scikit-learn and their parts.
KNOWN = (
    "entangled_kernels.alignment",
    "entangled_kernels.block_solvers",
    "entangled_kernels.estimators",
    "entangled_kernels.kernels",
    "entangled_kernels.learned",
    "entangled_kernels.linalg",
    "entangled_kernels.moments",
    "entangled_kernels.reduction",
    "sklearn.compose._column_transformer",
    "sklearn.gaussian_process.kernels",
    "sklearn.model_selection._split",
)


class ModelFileError(ValueError):
    """A model file that is damaged, of another kind, too new, or that holds what is not trusted."""


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    Attributes
    ----------
    model : estimator
    info : dict
        What was given to `save_model`.
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
        Anything that JSON can hold, to be found again in `SavedModel.info`.
    trusted : sequence of str, optional
        Full names of further classes that the feature map uses, such as ``"mypackage.MyTransformer"``. Those
        of scikit-learn and of this package are known. `load_model` needs the same list.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_linnerud
    >>> from entangled_kernels import EntangledKernelRidge
    >>> from entangled_kernels.persistence import load_model, save_model
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> model = EntangledKernelRidge().fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/exercise.model")
    ...     same = load_model(f"{folder}/exercise.model")
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    if not isinstance(model, MODELS):
        names = ", ".join(cls.__name__ for cls in MODELS)
        raise TypeError(f"model must be one of {names}, got {type(model).__name__}")
    check_is_fitted(model)
    # Rows that came in by partial_fit are solved for now.
    getattr(model, "coef_", None)
    header = {"format": FORMAT, "class": type(model).__name__, "software": software_versions("skops")}
    lines = MAGIC + json.dumps(header | {"info": info or {}}).encode() + b"\n"
    payload = _pack(model, trusted)
    digest = hashlib.sha256(lines)
    digest.update(payload)
    with atomic_write(path, "wb") as file:
        file.writelines([lines, payload, digest.digest()])


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read the model that `save_model` wrote.

    It predicts to the last bit as the one that was saved, with the same versions of the software.

    Parameters
    ----------
    path : path
    trusted : sequence of str, optional
        Full names of further classes that may be made, as in `save_model`.

    Raises
    ------
    ModelFileError
        When the file is damaged, of another kind, of a newer format, or holds types that are not trusted.
    OSError
        When there is no such file, or it cannot be read.
    """
    return open_model(path, trusted=trusted).model


def open_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> SavedModel:
    """Read a model with all that was saved beside it; otherwise as `load_model`."""
    header, payload = _read(Path(path))
    return SavedModel(_unpack(path, header, payload, trusted), header["info"], header["software"])


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and payload of a file whose checksum is right and whose format is known."""
    content = path.read_bytes()
    if not content:
        raise ModelFileError(f"{path} is empty, not a model file")
    if not content.startswith(MAGIC):
        if MAGIC.startswith(content):
            raise ModelFileError(f"{path} is damaged: it was cut short")
        raise ModelFileError(f"{path} is not a model file of entangled-kernels")
    body = content[:-DIGEST]
    if hashlib.sha256(body).digest() != content[-DIGEST:]:
        raise ModelFileError(
            f"{path} is damaged: its checksum does not match, so it was cut short or changed after "
            f"it was written"
        )
    line, _, payload = body[len(MAGIC) :].partition(b"\n")
    try:
        header = {"info": {}, "software": {}, **json.loads(line)}
        number = header["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"{path} is not a model file of entangled-kernels: it has no header") from error
    if number != FORMAT:
        writer = header["software"].get("entangled-kernels", "of unknown version")
        raise ModelFileError(
            f"{path} has model format {number}, written by entangled-kernels {writer}; this version reads "
            f"format {FORMAT}: upgrade entangled-kernels"
        )
    return header, payload


def _pack(model: Any, trusted: Sequence[str]) -> bytes:
    skops = _skops()
    payload: bytes = skops.dumps(model, compression=ZIP_DEFLATED)
    _, unknown = _types(skops, payload, trusted)
    if unknown:
        raise TypeError(
            f"model holds types that would not be loaded again: {', '.join(unknown)}; name them in trusted=, "
            f"here and when loading, if you trust them"
        )
    return payload


def _unpack(path: Any, header: dict[str, Any], payload: bytes, trusted: Sequence[str]) -> Any:
    skops = _skops()
    try:
        known, unknown = _types(skops, payload, trusted)
        if not unknown:
            model = skops.loads(payload, trusted=known)
            if isinstance(model, MODELS):
                return model
    except Exception as error:
        there, here = header["software"], software_versions("skops")
        differ = [
            f"{name} {there[name]} (here {here.get(name)})" for name in there if there[name] != here.get(name)
        ]
        raise ModelFileError(
            f"{path} cannot be loaded with the software installed here; it was written with "
            f"{', '.join(differ) or 'the same versions'} ({type(error).__name__}: {error})"
        ) from error
    if unknown:
        raise ModelFileError(
            f"{path} holds types that are not trusted, so nothing was loaded: {', '.join(unknown)}"
        )
    raise ModelFileError(f"{path} holds a {type(model).__name__}, not a model of entangled-kernels")


def _types(skops: Any, payload: bytes, trusted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Types in an archive that skops asks about: those known or in the list, and all others."""
    asked = skops.get_untrusted_types(data=payload)
    known = [name for name in asked if name in trusted or _is_known(name)]
    return known, [name for name in asked if name not in known]


def _is_known(name: str) -> bool:
    """Whether a full name is that of a class that models are made of; functions never are."""
    module, _, attribute = name.rpartition(".")
    if not any(module == own or module.startswith(f"{own}.") for own in KNOWN):
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
