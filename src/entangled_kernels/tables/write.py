"""Data frames as files, written whole or not at all."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np

from ..storage import atomic_write
from .kinds import table_kind
from .needs import need

__all__ = ["write_table"]


def write_table(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a pandas data frame, without its index, in the kind that the end of the name tells.

    Numbers keep every digit. What stood at ``path`` is replaced only once the new file is complete.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from entangled_kernels.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"fuel use": [0.1, 1 / 3]}), f"{folder}/cars.parquet")
    ...     float(read_table(f"{folder}/cars.parquet")["fuel use"][1]) == 1 / 3
    True
    """
    need("pandas", "pyarrow")
    kind = table_kind(path)
    if kind in ("csv", "tsv"):
        with atomic_write(path) as file:
            frame.to_csv(file, index=False, sep="\t" if kind == "tsv" else ",", lineterminator="\n")
    else:
        with atomic_write(path, "wb") as file:
            BINARY[kind](frame, file)


def _write_parquet(frame: Any, file: Any) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), file)


def _write_arrow(frame: Any, file: Any) -> None:
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _write_npz(frame: Any, file: Any) -> None:
    # By hand, because numpy.savez cannot name an array "file".
    with zipfile.ZipFile(file, "w") as archive:
        for name in frame.columns:
            values = frame[name].to_numpy()
            # Arrays of objects would have to be pickled.
            values = values.astype(str) if values.dtype == object else values
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)


BINARY = {"parquet": _write_parquet, "arrow": _write_arrow, "npz": _write_npz}
