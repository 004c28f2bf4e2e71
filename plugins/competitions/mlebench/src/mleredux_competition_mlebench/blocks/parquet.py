"""Parquet tables; reading and writing require the extra `parquet`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mleredux.errors import DataError

from mleredux_competition_mlebench.blocks.contents import Content
from mleredux_competition_mlebench.blocks.extras import require

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Parquet(Content):
    """A table as written by fastparquet, without an index: the bytes depend on the version, the content does not."""

    table: Any

    def stream(self, file: IO[bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.parquet"
            self.write(path)
            file.write(path.read_bytes())

    def write(self, path: Path) -> None:
        write = require("fastparquet", "parquet").write
        write(str(path), self.table.reset_index(drop=True), compression="SNAPPY", write_index=False)


def read_parquet(path: Path, where: str, columns: Iterable[str]) -> pd.DataFrame:
    """Read columns of a raw parquet table, with their stored types.

    Args:
        where: The table's name in messages.

    Raises:
        DataError: The table is damaged or lacks columns.
    """
    import pandas as pd

    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    try:
        # column by column, and copied out of Arrow's memory, so that a large table is held only once
        parts = {}
        for name in columns:
            read = parquet.read_table(path, columns=[name], pre_buffer=False)
            parts[name] = read.to_pandas()[name].copy()
            del read
            arrow.default_memory_pool().release_unused()
        return pd.DataFrame(parts, copy=False)
    except (arrow.ArrowException, OSError, KeyError) as error:
        raise DataError(
            f"Cannot read {where} as a Parquet table: {' '.join(str(error).split()).rstrip('.')}.",
            hint="Get the raw data again; the download may be incomplete.",
        ) from error
