"""Croissant 1.0: metadata of the public files of a run's task, without the answers."""

from __future__ import annotations

import csv
import hashlib
import json
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mleredux_rollout import ExportedRun, Format

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet"),
            *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
            *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
            "transform",
        )
    },
}
"""The context that version 1.0 requires."""
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_TYPES = ("sc:Integer", "sc:Float", "sc:Text")
_MAX_BYTES = 64 << 20
"""Maximum size of a table in bytes for inferring column types; columns of larger tables are declared as text."""


def _write(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    for exported in runs:
        task, public = exported.task, exported.public
        assert task is not None and public is not None
        files = sorted(path for path in public.rglob("*") if path.is_file() and not path.is_symlink())
        names = {path: path.relative_to(public).as_posix() for path in files}
        tables = [path for path in files if path.suffix == ".csv"]
        document = {
            "@context": _CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": task.id,
            "version": f"{task.version}.0.0" if task.version.isdigit() else task.version,
            "description": task.describe(),
            "license": f"https://spdx.org/licenses/{exported.license}.html" if exported.license else "unknown",
            "url": f"https://mleredux.github.io/mleredux/tasks/{task.id}",
            "distribution": [_file(path, names[path]) for path in files],
            "recordSet": [_records(path, names[path]) for path in tables],
        }
        yield json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def _file(path: Path, name: str) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "sha256": digest,
    }


def _records(path: Path, name: str) -> dict[str, Any]:
    """Return a table's record set: its columns, with types that fit all cells."""
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="", errors="replace") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        types = [0 if path.stat().st_size <= _MAX_BYTES else 2] * len(header)
        for row in rows if 0 in types else ():
            for place, cell in enumerate(row[: len(types)]):
                if types[place] < 2:
                    types[place] = max(types[place], _type(cell))
    key = name.removesuffix(".csv")
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{key}/{column}",
                "name": f"{key}/{column}",
                "dataType": _TYPES[kind],
                "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
            }
            for column, kind in zip(header, types, strict=True)
        ],
    }


def _type(cell: str) -> int:
    """Return the index in `_TYPES` of the narrowest type of a value; missing values turn integers into floats."""
    if _INTEGER.fullmatch(cell):
        return 0
    try:
        float(cell or "nan")
    except ValueError:
        return 2
    return 1


CROISSANT = Format(
    id="croissant",
    title="Metadata of the task's public files (Croissant 1.0)",
    suffix=".json",
    write=_write,
    needs=("public",),
)
