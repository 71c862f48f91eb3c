"""From a fitted model to nodes of a graph, step by step, each by the function that knows its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .columns import Columns, ExportError
from .graph import Graph

__all__ = ["Step", "Writer"]

Step = Callable[["Writer", Any, Columns], Columns]

WAY_OUT = (
    "fit the model with a step that can be exported (docs/export.md lists them), or keep it as a file of "
    "save_model"
)


class Writer:
    """Writes steps of a model into a graph.

    Parameters
    ----------
    graph : Graph
    transformers, regressors : mapping from type to function
        Functions of the writer, a fitted step and the columns that it takes, which give the features or the
        predictions. A type is found exactly: a subclass may compute something else.
    """

    def __init__(
        self, graph: Graph, transformers: Mapping[type, Step], regressors: Mapping[type, Step]
    ) -> None:
        self.graph, self._transformers, self._regressors = graph, transformers, regressors
        self._path: list[str] = []

    def features(self, step: Any, columns: Columns, name: str | None = None) -> Columns:
        """What a fitted transformer makes of columns; None and "passthrough" leave them as they are."""
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return columns
        return self._write(self._transformers, step, columns, name)

    def predictions(self, model: Any, columns: Columns, name: str | None = None) -> Columns:
        """What a fitted regressor predicts, (n, p)."""
        return self._write(self._regressors, model, columns, name)

    def refuse(self, reason: str, way_out: str = WAY_OUT) -> ExportError:
        """The error that names the step which is being written."""
        return ExportError(f"{' > '.join(self._path)} cannot be exported to ONNX: {reason}; {way_out}")

    def _write(self, known: Mapping[type, Step], step: Any, columns: Columns, name: str | None) -> Columns:
        kind = type(step).__name__
        with self._inside(kind if name is None else f"{name} ({kind})"):
            if type(step) not in known:
                raise self.refuse(f"there is no graph for {type(step).__module__}.{kind}")
            return known[type(step)](self, step, columns)

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        """Errors raised in here name the step."""
        self._path.append(name)
        try:
            yield
        except ExportError as error:
            # Columns do not know in which step they are used.
            if str(error).startswith("needs"):
                raise self.refuse(f"it {error}") from None
            raise
        finally:
            self._path.pop()
