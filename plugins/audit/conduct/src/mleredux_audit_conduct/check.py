"""All checks of one run, as `conduct.json` and `conduct.md`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError, file_errors
from mleredux.models import ResultVerdict
from mleredux.models.formats import counted
from mleredux.plugin.artifact import Artifact, Report, Run
from mleredux.plugin.files import write_atomically
from mleredux_rollout import texts_of

from mleredux_audit_conduct.predictions import hand_written
from mleredux_audit_conduct.rules import Finding, by_patterns
from mleredux_audit_conduct.similarity import known_code, similar

REFERENCES_VARIABLE = "MLEREDUX_REFERENCES"
MODEL_VARIABLE, COST_VARIABLE = "MLEREDUX_JUDGE_MODEL", "MLEREDUX_JUDGE_COST"
_ORDER = ("serious", "suspicious", "note")


def produce_conduct(run: Run) -> Iterable[Artifact]:
    """Write the check as artifacts of a run that just ended; use a judge only if the environment names one."""
    references = os.environ.get(REFERENCES_VARIABLE)
    model, cost = os.environ.get(MODEL_VARIABLE), os.environ.get(COST_VARIABLE)
    document = check(
        run, references=Path(references) if references else None, model=model, cost=float(cost) if cost else None
    )
    return write(run, document)


def check(
    run: Run, *, references: Path | None = None, model: str | None = None, cost: float | None = None
) -> dict[str, Any]:
    """Check a run.

    Args:
        references: A folder of reference kernels.
        model: A model of the gateway that judges by the same rules.
        cost: The model's budget in USD.

    Returns:
        A mapping with `findings` (most severe first), `looked_at`, `compared_with`, and `judge` if one was used.
    """
    texts = texts_of(run)
    code = [text for text in texts if text.kind == "code"]
    report = run.report
    findings = [*_of_verdict(report), *by_patterns(texts)]
    if "@" not in run.spec.task:  # technique submissions are meant to be written by hand
        findings += hand_written(code, _rows(run), submitted=report is not None and report.valid_submission)
    known = known_code(run, references) if code else []
    findings += similar(code, known)
    checked: dict[str, Any] = {
        "run": run.id,
        "looked_at": [text.where for text in texts],
        "compared_with": [item.name for item in known],
    }
    if model:
        from mleredux_audit_conduct.judge import judge

        try:
            opinion = judge(run, texts, model, cost)
        except MlereduxError as error:
            checked["judge"] = {"model": model, "error": str(error)}
        else:
            findings += opinion.findings
            use = opinion.use.model_dump(mode="json")
            checked["judge"] = {"model": model, "unfounded": opinion.unfounded, "use": use}
    findings.sort(key=lambda finding: _ORDER.index(finding.severity))
    return {**checked, "findings": [asdict(finding) for finding in findings]}


def write(run: Run, checked: dict[str, Any]) -> list[Artifact]:
    """Write the check in both formats.

    Raises:
        MlereduxError: A file can't be written.
    """
    texts = {"conduct.json": json.dumps(checked, indent=1) + "\n", "conduct.md": as_markdown(checked)}
    with file_errors(MlereduxError, f"The check of run {run.id} can't be written", f"Check the files in {run.path}."):
        for name, text in texts.items():
            write_atomically(run.path / name, text.encode("utf-8", "replace"))
    return [
        Artifact(path="conduct.json", media_type="application/json", producer="conduct", title="Conduct: findings"),
        Artifact(path="conduct.md", media_type="text/markdown", producer="conduct", title="Conduct: lines to review"),
    ]


def as_markdown(checked: dict[str, Any]) -> str:
    """Render the check for people: each finding with its line."""
    findings: Sequence[dict[str, Any]] = checked["findings"]
    counts = ", ".join(f"{sum(item['severity'] == severity for item in findings)} {severity}" for severity in _ORDER)
    lines = [
        f"# Conduct in run {checked['run']}",
        "",
        f"{counts}. These are lines to review, not verdicts: a pattern can't recognize intentions.",
        f"Checked {len(checked['looked_at'])} texts and compared the code with {len(checked['compared_with'])} others.",
    ]
    if judged := checked.get("judge"):
        reason = judged.get("error") or f"{judged['unfounded']} of its findings did not quote an existing line"
        lines.append(f"Judge {judged['model']}: {reason}.")
    for item in findings:
        place = item["where"] + (f", line {item['line']}" if item["line"] else "")
        lines += ["", f"## {item['severity']}: {item['rule']}", "", f"{item['why']} ({place})"]
        if item["evidence"]:
            fence = "`" * max(3, _longest_run(item["evidence"]) + 1)
            lines += ["", fence, item["evidence"], fence]
        if item["more"]:
            lines += ["", f"{counted(item['more'], 'more line')} match."]
    return "\n".join(lines) + "\n"


def _longest_run(text: str) -> int:
    longest = count = 0
    for char in text:
        count = count + 1 if char == "`" else 0
        longest = max(longest, count)
    return longest


def _of_verdict(report: Report | None) -> Iterator[Finding]:
    """Return the evidence behind the verdict on the result."""
    verdict = report.verdict if report else ResultVerdict()
    for item in verdict.evidence:
        if item.level != "within reach" and item.kind != "copied":  # `similar` finds the lines
            yield Finding(
                item.kind, "serious" if item.level == "seen" else "suspicious", "report.json", None, "", item.why
            )
    check = verdict.verification
    if check is not None and check.status == "not reproducible":
        yield Finding("not-reproducible", "serious", "report.json", None, "", check.why)


def _rows(run: Run) -> int | None:
    report = run.report
    path = run.path / report.submission_path if report else None
    if path is None or not path.is_file() or path.stat().st_size > 256 << 20:
        return None
    with path.open("rb") as file:
        return max(0, sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) - 1)
