"""Verification: the final code runs again on permuted test data, and must achieve the score of the submission."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Report, Verification

from mleredux_artifact_notes.permutation import NotPermutable, permutation_of
from mleredux_artifact_notes.rerun import RUNNER, WITHHELD, copy_output, copy_programs, entry_point

if TYPE_CHECKING:
    from mleredux.plugin.host import Trial

REPETITIONS = 3
"""Maximum number of executions; one is enough if it achieves the score."""
ERRORS, MOST_ERRORS = 2.0, 3.0
"""The tolerance in standard errors of the score: at least, and at most, however much repetitions differ."""
UNKNOWN = 0.01
"""The tolerance relative to the score, if no standard error can be estimated."""


def verify(trial: Trial, report: Report) -> Verification:
    """Run the final code up to `REPETITIONS` times, each time on another permutation.

    The result is verified if the best score is not worse than the submission's by more than the tolerance: the spread
    of the repetitions, but at least `ERRORS` and at most `MOST_ERRORS` standard errors of the score over the test rows.
    (An upper limit is needed, since code chooses how much its repetitions differ.)
    """
    run, task, score = trial.run, trial.task, report.score
    assert score is not None
    declared = _declared(trial)
    try:
        entry, inference = (" ".join(declared), True) if declared else entry_point(run)
        permutation_of(task, trial.public, SystemRandom())
    except (MlereduxError, NotPermutable) as error:
        return Verification(status="not attempted", why=str(error))
    scores: list[float | None] = []
    sign = -1.0 if report.is_lower_better else 1.0
    why = ""
    deviation: float | None = None
    with tempfile.TemporaryDirectory(prefix="mleredux-verify-") as folder:
        restored = Path(folder) / "best.csv"
        for number in range(REPETITIONS):
            trial.say(f"executing the final code again ({number + 1} of at most {REPETITIONS})")
            made, why = _repeat(trial, entry, inference, declared, restored)
            scores.append(made)
            if made is None:
                break  # it failed, which counts against the run
            if sign * (score - made) <= 0 or made in scores[:-1]:  # achieved, or not random
                break
            if deviation is None:
                deviation = _standard_error(trial, report, restored)
            if sign * (score - made) <= ERRORS * deviation:
                break
    facts = {"entry": entry, "score": score, "scores": tuple(scores)}
    known = [item for item in scores if item is not None]
    if not known or scores[-1] is None:
        return Verification(
            status="not reproducible", why=f"The code created no valid submission again: {why}", **facts
        )
    best = max(known, key=lambda item: sign * item)
    spread = max(known) - min(known) if len(known) > 1 else 0.0
    allowed = min(max(spread, ERRORS * (deviation or 0.0)), MOST_ERRORS * (deviation or 0.0))
    if sign * (score - best) <= allowed:
        why = f"Executed again on permuted test data, the code achieves {best:g}; the submission has {score:g}."
        return Verification(status="verified", why=why, tolerance=allowed, **facts)
    why = (
        f"Executed again on permuted test data, the code achieves at best {best:g}; the submission has {score:g} "
        f"(tolerance {allowed:.2g})."
    )
    return Verification(status="not reproducible", why=why, tolerance=allowed, **facts)


def _declared(trial: Trial) -> tuple[str, ...]:
    from mleredux.plugin.command import current

    try:
        return current().agent(trial.run.spec.agent, trial.run.spec.options).verify
    except MlereduxError:
        return ()


def _repeat(
    trial: Trial, entry: str, inference: bool, declared: tuple[str, ...], restored: Path
) -> tuple[float | None, str]:
    """Execute once; the score, and why there is none. The submission is kept as `restored`."""
    run, random = trial.run, SystemRandom()
    script = entry

    def fill(output: Path) -> None:
        nonlocal script
        (output / "code").mkdir(exist_ok=True)
        if inference:
            copy_output(run, output)
        else:
            script = copy_programs(run, output, entry)

    with tempfile.TemporaryDirectory(prefix="permuted-", dir=trial.folder) as folder:
        public = Path(folder) / "public"
        public.mkdir()
        Path(folder).chmod(0o755)
        found = permutation_of(trial.task, trial.public, random)
        found.write(trial.public, public, random)
        withheld = {name.rpartition(".")[0] for name in trial.task.known_answers}
        command = ("sh", "-c", 'cd code && exec "$@"', "sh", *declared) if declared else None
        if command is None:
            name = entry.removesuffix(".ipynb") + ".py" if entry.endswith(".ipynb") else entry
            command = ("python", "-c", RUNNER, name)
        made = trial.execute(command, public, fill, {WITHHELD: ":".join(sorted(withheld))} if withheld else {})
        if isinstance(made, str):
            return None, made
        latest = restored.with_name("latest.csv")
        try:
            found.restore(made, latest)
        except NotPermutable as error:
            return None, str(error)
    [score] = trial.scores([latest])
    if score is None:
        return None, "Its submission is not valid."
    shutil.copyfile(latest, restored)
    return score, ""


def _standard_error(trial: Trial, report: Report, restored: Path) -> float:
    """The standard error of the score: the larger of the submission's and the repetition's."""
    trial.say("estimating the standard error of the score")
    found = [trial.standard_error(path) for path in (trial.run.path / report.submission_path, restored)]
    known = [error for error in found if error is not None]
    return max(known) if known else UNKNOWN * abs(report.score or 0.0)
