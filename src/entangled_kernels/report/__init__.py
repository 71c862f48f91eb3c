"""One self-contained HTML page that tells what was run and what came of it."""

from .page import Report

__all__ = ["Report"]
