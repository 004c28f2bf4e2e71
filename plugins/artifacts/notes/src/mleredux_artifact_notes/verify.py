"""Verification: the final code runs again on permuted test data, and must achieve the score of the submission."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Literal

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Report, Verification

from mleredux_artifact_notes.permutation import NotPermutable, permutation_of
from mleredux_artifact_notes.rerun import RUNNER, WITHHELD, copy_output, copy_programs, entry_point
from mleredux_artifact_notes.targets import Relabelling, is_constant, relabelling_of, same_predictions

if TYPE_CHECKING:
    from mleredux.plugin.host import Trial

REPETITIONS = 3
"""Maximum number of executions; one is enough if it achieves the score."""
ERRORS, MOST_ERRORS = 2.0, 3.0
"""The tolerance in standard errors of the score: at least, and at most, however much repetitions differ."""
Status = Literal["verified", "not reproducible", "not attempted"]
UNKNOWN = 0.01
"""The tolerance relative to the score, if no standard error can be estimated."""


def verify(trial: Trial, report: Report) -> Verification:
    """Run the final code up to `REPETITIONS` times, each time on another permutation.

    The result is verified if the best score is not worse than the submission's by more than the tolerance: the spread
    of the repetitions, but at least `ERRORS` and at most `MOST_ERRORS` standard errors of the score over the test rows.
    (An upper limit is needed, since code chooses how much its repetitions differ.) Where the training data is a table
    with the targets, its predictions must also change with them.
    """
    score = report.score
    assert score is not None
    declared = _declared(trial)
    try:
        entry, inference = (" ".join(declared), True) if declared else entry_point(trial.run)
        relabelling = _relabelling(trial, inference)
    except (MlereduxError, NotPermutable) as error:
        return Verification(status="not attempted", why=str(error))
    with tempfile.TemporaryDirectory(prefix="mleredux-verify-") as folder:
        try:
            return _verified(_Code(trial, entry, inference, declared, Path(folder)), report, score, relabelling)
        except NotPermutable as error:
            return Verification(status="not attempted", why=str(error))


@dataclass
class _Code:
    """What is executed, and where its submissions are kept."""

    trial: Trial
    entry: str
    inference: bool
    declared: tuple[str, ...]
    folder: Path

    @property
    def restored(self) -> Path:
        """The last valid submission, with the old ids."""
        return self.folder / "restored.csv"


def _verified(code: _Code, report: Report, score: float, relabelling: Relabelling | None) -> Verification:
    trial, scores = code.trial, list[float | None]()
    sign = -1.0 if report.is_lower_better else 1.0
    why = ""
    deviation: float | None = None
    for number in range(REPETITIONS):
        trial.say(f"executing the final code again ({number + 1} of at most {REPETITIONS})")
        made, why = _repeat(code, code.restored)
        scores.append(made)
        if made is None:
            break  # it failed, which counts against the run
        if sign * (score - made) <= 0 or made in scores[:-1]:  # achieved, or not random
            break
        if deviation is None:
            deviation = _standard_error(trial, report, code.restored)
        if sign * (score - made) <= ERRORS * deviation:
            break
    facts = {"entry": code.entry, "score": score, "scores": tuple(scores)}
    known = [item for item in scores if item is not None]
    if not known or scores[-1] is None:
        return Verification(
            status="not reproducible", why=f"The code created no valid submission again: {why}", **facts
        )
    best = max(known, key=lambda item: sign * item)
    spread = max(known) - min(known) if len(known) > 1 else 0.0
    allowed = min(max(spread, ERRORS * (deviation or 0.0)), MOST_ERRORS * (deviation or 0.0))
    if sign * (score - best) > allowed:
        why = (
            f"Executed again on permuted test data, the code achieves at best {best:g}; the submission has {score:g} "
            f"(tolerance {allowed:.2g})."
        )
        return Verification(status="not reproducible", why=why, tolerance=allowed, **facts)
    why = f"Executed again on permuted test data, the code achieves {best:g}; the submission has {score:g}."
    if relabelling is None or is_constant(code.restored, relabelling.targets):
        return Verification(status="verified", why=why, tolerance=allowed, **facts)
    status, more = _learns(code, relabelling)
    return Verification(status=status, why=f"{why} {more}", tolerance=allowed, **facts)


def _learns(code: _Code, relabelling: Relabelling) -> tuple[Status, str]:
    """Whether predictions depend on the training targets: execute once more with other ones."""
    code.trial.say("executing the final code once more, with other training targets")
    changed = code.folder / "changed.csv"
    made, why = _repeat(code, changed, relabelling)
    if made is None:
        return "not attempted", f"With other training targets it creates no valid submission: {why}"
    if same_predictions(code.restored, changed, relabelling.targets):
        same = "With other training targets it predicts the same"
        if relabelling.proves:
            return "not reproducible", f"{same}: its answers are looked up."
        return "not attempted", f"{same}: it does not learn, so it can't be told from code that brings answers along."
    return "verified", "With other training targets it predicts other values."


def _relabelling(trial: Trial, inference: bool) -> Relabelling | None:
    """The training targets; None where they are not in a table, or where the code does not train.

    Raises:
        NotPermutable: The test rows can't be re-identified safely.
    """
    dated = bool(permutation_of(trial.task, trial.public, SystemRandom()).years)
    if inference and not dated:
        return None
    kept = "The ids contain dates, whose months and days stay, so answers could be looked up by them."
    if inference:
        raise NotPermutable(f"{kept} An inference entry point does not train, which would show it.")
    try:
        return replace(relabelling_of(trial.task, trial.public), proves=dated or bool(trial.task.known_answers))
    except NotPermutable as error:
        if dated:
            raise NotPermutable(f"{kept} {error}") from None
        return None


def _declared(trial: Trial) -> tuple[str, ...]:
    from mleredux.plugin.command import current

    try:
        return current().agent(trial.run.spec.agent, trial.run.spec.options).verify
    except MlereduxError:
        return ()


def _repeat(code: _Code, restored: Path, relabelling: Relabelling | None = None) -> tuple[float | None, str]:
    """Execute once; the score, and why there is none. The submission is kept as `restored`."""
    trial, declared, random = code.trial, code.declared, SystemRandom()
    run, script = trial.run, code.entry

    def fill(output: Path) -> None:
        nonlocal script
        (output / "code").mkdir(exist_ok=True)
        if code.inference:
            copy_output(run, output)
        else:
            script = copy_programs(run, output, code.entry)

    with tempfile.TemporaryDirectory(prefix="permuted-", dir=trial.folder) as folder:
        public = Path(folder) / "public"
        public.mkdir()
        Path(folder).chmod(0o755)
        found = permutation_of(trial.task, trial.public, random)
        found.write(trial.public, public, random)
        if relabelling is not None:
            relabelling.write(public, random)
        withheld = {name.rpartition(".")[0] for name in trial.task.known_answers}
        command = ("sh", "-c", 'cd code && exec "$@"', "sh", *declared) if declared else None
        if command is None:
            name = code.entry.removesuffix(".ipynb") + ".py" if code.entry.endswith(".ipynb") else code.entry
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
