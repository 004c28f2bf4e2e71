"""Files of an analysis: the report (an offline page for readers without a background in statistics), and exports of the
runs as a table and of the results as tables for papers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.files import write_atomically

from mleredux_experiments.figures.pictures import Picture, pictures
from mleredux_experiments.figures.tables import analysis_tables, cell, csv_text, is_numeric, latex, markdown

if TYPE_CHECKING:
    from mleredux_experiments.analysis.analysis import Analysis


def page(analysis: Analysis, plots: Iterable[Picture], template: str = "page.html.j2") -> str:
    """Return the whole page, which loads no other files; with the template `body.html.j2`, only its content."""
    loader = PackageLoader("mleredux_experiments", "figures")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    values = {"cell": cell, "is_numeric": is_numeric, "tables": analysis_tables(analysis)}
    return environment.get_template(template).render(analysis=analysis, pictures=plots, **values)


def write(analysis: Analysis, folder: Path, formats: tuple[str, ...] = ("svg",)) -> list[Path]:
    """Write `report.html`, `analysis.json` and the plots.

    Returns:
        The paths of the files, the page first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plots = list(pictures(analysis))
    files = [folder / "report.html", folder / "analysis.json"]
    files[0].write_text(page(analysis, plots), encoding="utf-8")
    files[1].write_text(json.dumps(analysis.record(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for picture in plots:
        for suffix in formats:
            files.append(folder / f"{picture.name}.{suffix}")
            picture.save(files[-1])
    return files


def export(analysis: Analysis, form: str, path: Path) -> list[Path]:
    """Write an analysis to files.

    Args:
        form: `parquet` (the runs), `csv` (a folder: the runs, and each table), `latex`, `markdown` or `json`.

    Raises:
        MlereduxError: The file cannot be written, or `parquet` needs a package that is not installed.
    """
    with file_errors(MlereduxError, f"{path} can't be written", "Choose another output with -o."):
        if form == "parquet":
            return [_parquet(analysis, path)]
        if form == "csv":
            return _csv(analysis, path)
        write_atomically(path, _text(analysis, form))
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
        message = "Parquet needs pyarrow."
        raise MlereduxError(message, hint="Install it: `pip install 'mleredux[experiments]'`, or export csv.") from None
    return path


def _csv(analysis: Analysis, folder: Path) -> list[Path]:
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "runs.csv"]
    rows = pd.DataFrame(list(analysis.results.records()), dtype=object)  # integers stay integers
    rows.to_csv(files[0], index=False, lineterminator="\n")
    for table in analysis_tables(analysis):
        name = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:80]
        files.append(folder / f"{name}.csv")
        write_atomically(files[-1], csv_text(table))
    return files
