"""Versions of the software that wrote a file."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["software_versions"]

PACKAGES = ("entangled-kernels", "numpy", "scipy", "scikit-learn")


def software_versions(*more: str) -> dict[str, str]:
    """Versions of Python, of the core packages and of those named that are installed."""
    versions = {"python": platform.python_version()}
    for package in (*PACKAGES, *more):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
