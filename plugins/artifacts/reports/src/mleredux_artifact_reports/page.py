"""`report.html`: one file that opens offline, without scripts, in which all text is escaped."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from mleredux.plugin.artifact import Artifact, Run
from mleredux.plugin.files import cache_dir, write_atomically

from mleredux_artifact_reports.files import visible
from mleredux_artifact_reports.view import page_of

TEMPLATES = Path(__file__).parent / "templates"
"""The folder of templates and the style sheet."""


def produce_report(run: Run, artifacts: tuple[Artifact, ...]) -> Artifact:
    """Write the run's page, including the artifacts that plugins made."""
    write_atomically(run.path / "report.html", render(run, artifacts))
    return Artifact(path="report.html", media_type="text/html", producer="reports", title="Run report")


def render(run: Run, artifacts: tuple[Artifact, ...] = ()) -> str:
    """Render the page of a run. Its content security policy allows only the style sheet, by its hash."""
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    html = (
        _environment()
        .get_template("report.html.j2")
        .render(page=page_of(run, artifacts), style=style, style_hash=digest)
    )
    return visible(html)


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates in the user's cache, since compiling takes longer than rendering; unused without a cache."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        bytecode_cache=_Compiled(str(cache_dir() / "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
