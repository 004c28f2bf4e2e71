"""Exports of an analysis: the runs as a table, and the results as tables for papers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically

from mleredux_experiments.figures.tables import analysis_tables, csv_text, latex, markdown

if TYPE_CHECKING:
    from mleredux_experiments.analysis.analysis import Analysis


def export(analysis: Analysis, form: str, path: Path) -> list[Path]:
    """Write an analysis to files.

    Args:
        form: `parquet` (the runs), `csv` (a folder: the runs, and each table), `latex`, `markdown` or `json`.

    Raises:
        MlereduxError: The file cannot be written, or `parquet` needs a package that is not installed.
    """
    try:
        if form == "parquet":
            return [_parquet(analysis, path)]
        if form == "csv":
            return _csv(analysis, path)
        write_atomically(path, _text(analysis, form))
    except OSError as error:
        raise MlereduxError(
            f"{path} can't be written: {error.strerror or error}.", hint="Choose another output with -o."
        ) from error
    return [path]


def _text(analysis: Analysis, form: str) -> str:
    if form == "json":
        return json.dumps(analysis.record(), indent=1, allow_nan=False) + "\n"
    tables = analysis_tables(analysis)
    if form == "latex":
        return "\n".join(["% needs \\usepackage{booktabs}", *(latex(table) for table in tables)])
    sentences = "\n\n".join(analysis.sentences)
    return "\n".join([f"## {analysis.name}\n\n{sentences}\n", *(markdown(table) for table in tables)])


def _parquet(analysis: Analysis, path: Path) -> Path:
    try:
        analysis.results.frame.to_parquet(path, index=False, engine="pyarrow")
    except ImportError:
        raise MlereduxError(
            "Parquet needs pyarrow.", hint="Install it: `pip install 'mleredux[experiments]'`, or export csv."
        ) from None
    return path


def _csv(analysis: Analysis, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "runs.csv"]
    rows = list(analysis.results.records())
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with files[0].open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for table in analysis_tables(analysis):
        name = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:80]
        files.append(folder / f"{name}.csv")
        write_atomically(files[-1], csv_text(table))
    return files
