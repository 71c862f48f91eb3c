"""Work on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config

from ..streams import BatchReader, file_kind, text_delimiter
from .errors import CommandError

__all__ = ["cluster", "read_on_cluster"]


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Work on the Dask cluster at this address, joblib's parallel loops too; None stays here."""
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ImportError('--dask needs Dask: pip install "entangled-kernels[dask]"') from error
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise CommandError(f"no Dask scheduler answers at {address}: {error}") from error
    with client, parallel_config(backend="dask"):
        yield


def read_on_cluster(reader: BatchReader) -> tuple[Any, Any]:
    """Inputs and targets of the files as Dask data frames."""
    import dask.dataframe as dd

    files, columns = list(reader.files), [*reader.inputs, *reader.targets]
    kinds = {file_kind(file, compressed=False) for file in files}
    if kinds == {"csv"}:
        types = {name: str if reader.kinds[name] == "text" else float for name in columns}
        rows = dd.read_csv(files, sep=text_delimiter(files[0]), usecols=columns, dtype=types)
    elif kinds == {"parquet"}:
        rows = dd.read_parquet(files, columns=columns)
    else:
        raise CommandError("--dask reads Parquet files or CSV files, all of one kind")
    return rows[list(reader.inputs)], rows[list(reader.targets)]
