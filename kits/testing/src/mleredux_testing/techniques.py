"""Checks that every technique must pass, on the toy task."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from mleredux._core.data import DataStore, Prepared
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate
from mleredux.errors import MlereduxError, NotApplicable, NotFound
from mleredux.models import Task, Technique

from mleredux_testing.findings import Findings
from mleredux_testing.tasks import expect_private, expect_same, hashes
from mleredux_testing.toys import TOY_PLUGIN

_NO_DOCUMENTS = (b"", b"no JSON", b"[]", b"{}", b'{"no": "field"}', b'{"notes": NaN}', b"\xff\xfe{", b"[" * 100_000)


def check_technique(technique: Technique | str, tmp: Path | None = None, *, base: str = "toy") -> Findings:
    """Check a technique: the tasks that it derives, their preparation, and the rejection of invalid submissions to
    them.

    Args:
        technique: The technique, or its id.
        tmp: A folder for the data; None: a temporary folder.
        base: The task to derive from; if the technique does not apply to it, the error must state this.

    Raises:
        NotConforming: With all problems.
    """
    catalogue = Catalogue(load=[TOY_PLUGIN])
    findings = Findings(f"Technique {technique if isinstance(technique, str) else technique.id}")
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder, findings.looking_at("technique"):
        checked = catalogue.technique(technique) if isinstance(technique, str) else technique
        findings.expect("title", checked.title.strip(), "it has no title.")
        _check_refusal(findings, checked, catalogue.task(base))
        for variant in (None, *(re.sub(r"[A-Z]+", "1", name) for name in checked.variants)):
            name = f"{checked.id}{f'+{variant}' if variant else ''}@{base}"
            with findings.looking_at(name):
                try:
                    task = checked.derive(catalogue.task(base), variant)
                    _check_task(findings, name, task, catalogue, DataStore((tmp or Path(folder)) / "data"))
                except NotApplicable as error:
                    findings.expect(name, _is_sentence(error.message), f"{error.message!r} is not one sentence.")
    return findings.close()


def _check_refusal(findings: Findings, technique: Technique, base: Task) -> None:
    try:
        technique.derive(base, "no such variant")
    except (NotFound, NotApplicable):
        findings.good("unknown variant")
    else:
        findings.bad("unknown variant", "a variant that does not exist is created.", "Raise NotFound.")


def _check_task(findings: Findings, name: str, task: Task, catalogue: Catalogue, data: DataStore) -> None:
    findings.expect(f"{name}: id", task.id == name, f"it has the id {task.id!r}.")
    related = task.kind == "technique" and task.base is not None
    findings.expect(f"{name}: base", related, "its kind is not `technique`, or it has no base.")
    file = task.submission.file
    findings.expect(f"{name}: description", file in task.describe(), f"its description never names {file}.")
    prepared = prepare(task, catalogue, data)
    first = hashes(prepared.public.parent)
    again = hashes(prepare(task, catalogue, data, force=True).public.parent)
    expect_same(findings, f"{name}: same bytes each time", first, again)
    findings.expect(f"{name}: answers", (prepared.private / task.answers).is_file(), f"there is no {task.answers}.")
    expect_private(findings, f"{name}: private files", first)
    _check_documents(findings, name, task, prepared, data.path)


def _check_documents(findings: Findings, name: str, task: Task, prepared: Prepared, folder: Path) -> None:
    schema = read_schema(prepared.schema)
    path = folder / task.submission.file
    for content in _NO_DOCUMENTS:
        path.write_bytes(content)
        shown = f"{name}: refuses {content[:20]!r}"
        try:
            verdict = validate(schema, path)
        except MlereduxError as error:
            findings.bad(shown, f"validation fails: {error}")
            continue
        findings.expect(shown, not verdict.valid, "it is accepted as an answer.")
        findings.expect(shown, _is_sentence(verdict.message), f"{verdict.message!r} is not one sentence.")


def _is_sentence(message: str) -> bool:
    return "\n" not in message.strip() and message.strip().endswith(".") and "Traceback" not in message
