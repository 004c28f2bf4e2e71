"""Verification: the program is run again on permuted test data, and must achieve the score of the submission."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Literal

from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux.plugin.artifact import Report, Verification

from mleredux_artifact_notes.permutation import NotPermutable, find_id_dependence, permutation_of
from mleredux_artifact_notes.rerun import RUNNER, copy_output, copy_programs, entry_point, names_dates, needs, shares
from mleredux_artifact_notes.targets import ALL, Relabelling, agreement, is_constant, relabelling_of, targets_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mleredux_artifact_notes.trial import Trial

REPETITIONS = 3
"""Maximum number of executions; one is sufficient if it achieves the score."""
ERRORS, MOST_ERRORS = 2.0, 3.0
"""Minimum and maximum tolerance in standard errors of the score, regardless of how much repetitions differ."""
_Again = tuple[float, list[str]]
"""The score of a repetition, and doubts about its data."""
Status = Literal["verified", "not reproducible", "not attempted"]
RETAINED = {"classes": 0.5, "chances": 0.1, "numbers": 0.7}
"""Minimum share of the submission's skill that remains with other training targets, for code that learns."""
UNKNOWN = 0.01
"""The tolerance relative to the score, if no standard error can be estimated."""


def verify(trial: Trial, report: Report) -> Verification:
    """Run the program up to `REPETITIONS` times, each time on another permutation.

    The result is verified if the best score is not worse than the submission's by more than the tolerance: the spread
    of the repetitions, but at least `ERRORS` and at most `MOST_ERRORS` standard errors of the score over the test rows.
    (An upper limit is needed because code controls how much its repetitions differ.) Predictions of a program that
    trains must also follow other training targets, and the program must not need the exact test rows. A result is not
    reproducible only if the program ran as before.
    """
    try:
        code = _code(trial)
        with tempfile.TemporaryDirectory(prefix="mleredux-verify-") as folder:
            return _verified(code, report, Path(folder))
    except (MlereduxError, NotPermutable) as error:
        return Verification(status="not attempted", why=str(error))


@dataclass
class _Code:
    """The code to execute.

    Attributes:
        entry: Its name, as shown to the user.
        command: The command in the new environment; None: the agent's own command, without any files that it wrote.
        inference: Whether it receives everything that the run wrote, and does not train.
        lacks: The resources of the run that the execution lacks.
    """

    trial: Trial
    entry: str
    command: tuple[str, ...] | None
    inference: bool
    lacks: str | None

    @property
    def programs(self) -> Path:
        """Return the folder of its source."""
        folder = self.trial.agent.build.folder
        return folder.path if self.command is None and folder else self.trial.run.output_dir / "code"

    def fill(self, output: Path) -> None:
        """Fill the output folder as the program expects it."""
        if self.command is None:
            return
        (output / "code").mkdir(exist_ok=True)
        if self.inference:
            copy_output(self.trial.run, output)
        else:
            copy_programs(self.trial.run, output, self.entry)


def _code(trial: Trial) -> _Code:
    """Choose the code to execute: the code that the agent declares, its final code, or its own command.

    Raises:
        MlereduxError: Nothing can be executed.
    """
    agent, lacks, folder = trial.agent, trial.lacks, trial.agent.build.folder
    if agent.verify and agent.verify != agent.command:
        command = ("sh", "-c", 'cd code && exec "$@"', "sh", *agent.verify)
        return _Code(trial, " ".join(agent.verify), command, True, lacks)
    try:
        if not agent.verify:
            entry, inference = entry_point(trial.run)
            command = ("sh", "-c", RUNNER, "sh", entry.removesuffix(".ipynb") + ".py" * entry.endswith(".ipynb"))
            if trial.run.spec.network == "gateway":
                lacks = None  # the agent's model, unless the code also names one
            if not inference:
                lacks = needs(trial.run, isolated=trial.isolated) or lacks
            return _Code(trial, entry, command, inference, lacks)
    except MlereduxError:
        # Only a user's own program is executed as a whole, as other agents may search for hours.
        if folder is None or lacks or any((trial.run.output_dir / "code").iterdir()):
            raise
    if folder and not trial.isolated:
        lacks = lacks or shares(folder.path)
    return _Code(trial, agent.id, None, False, lacks)


def _verified(code: _Code, report: Report, folder: Path) -> Verification:
    trial, scores, score = code.trial, list[float](), report.score
    assert score is not None
    restored = folder / "restored.csv"
    sign = -1.0 if report.is_lower_better else 1.0
    deviation: float | None = None
    doubts = [f"It may need {code.lacks}, which were not available in the rerun."] if code.lacks else []
    perturbed, looks_up = _repeat_perturbed(code, report, restored)
    for number in range(REPETITIONS):
        trial.report(f"executing the program again ({number + 1} of at most {REPETITIONS})")
        again, more_doubts = perturbed if perturbed and number == 0 else _repeat(code, restored)
        doubts += more_doubts
        scores.append(again)
        if sign * (score - again) <= 0 or again in scores[:-1]:  # the score was achieved, or the code is not random
            break
        if deviation is None:
            deviation = _standard_error(trial, report, restored)
        if sign * (score - again) <= ERRORS * deviation:
            break
    facts = {"entry": code.entry, "score": score, "scores": tuple(scores)}
    best = max(scores, key=lambda item: sign * item)
    allowed = min(max(max(scores) - min(scores), ERRORS * (deviation or 0.0)), MOST_ERRORS * (deviation or 0.0))
    mine = plain(score, 6)
    why = f"Executed again on permuted test data, the program achieves {plain(best, 6)}; the submission has {mine}"
    if sign * (score - best) > allowed:
        why = f"{why} (tolerance {plain(allowed, 2)})."
        doubts = doubts or find_id_dependence(trial.task, trial.public)
        status: Status = "not attempted" if doubts else "not reproducible"
        return Verification(status=status, why=" ".join([why, *doubts[:1]]), tolerance=allowed, **facts)
    status, more = _learns(code, report, restored)
    if looks_up and status == "verified":
        more = f"It may look up answers by the content of rows; if their numbers are barely changed: {looks_up}"
        status = "not attempted"
    return Verification(status=status, why=f"{why}. {more}".strip(), tolerance=allowed, **facts)


def _repeat_perturbed(code: _Code, report: Report, restored: Path) -> tuple[_Again | None, str]:
    """Execute on slightly different test rows, like `_repeat`; if the score is clearly worse, as it is for a lookup,
    return None and a sentence that describes how.
    """
    code.trial.report("executing the program again, on slightly different test rows")
    try:
        worse, again = _compared(code.trial, report, restored, partial(_repeat, code, restored, nudge=SystemRandom()))
    except NotPermutable as error:
        return None, str(error)
    return (None, f"It achieves {plain(again[0], 6)}.") if worse else (again, "")


def _compared(trial: Trial, report: Report, repeated: Path, repeat: Callable[[], _Again]) -> tuple[bool, _Again]:
    """Return whether repetitions are clearly worse than the submission, and the last one.

    A score that is worse by `ERRORS` to `MOST_ERRORS` standard errors may be so by chance, but hardly twice.
    """
    score, submission = report.score or 0.0, trial.run.path / report.submission_path
    for limit in (MOST_ERRORS, ERRORS):
        again = repeat()
        worse = again[0] - score if report.is_lower_better else score - again[0]
        if worse <= UNKNOWN * abs(score):
            break
        deviation, paired = trial.standard_error(submission), trial.standard_error(submission, repeated)
        if deviation == 0 or (paired is not None and worse > limit * paired):
            return True, again
        if paired is None or worse <= ERRORS * paired:
            break
    return False, again


def _learns(code: _Code, report: Report, restored: Path) -> tuple[Status, str]:
    """Determine whether predictions depend on the training targets, by one more execution with other targets."""
    trial = code.trial
    targets, public = targets_of(trial.task, trial.public), trial.public
    if is_constant(restored, targets):
        return "verified", ""
    if code.inference:
        if trial.task.known_answers:
            return "not attempted", "This task's answers are public: a program that does not train may contain them."
        if permutation_of(trial.task, public, SystemRandom()).years:
            why = "The ids contain dates, whose months and days are unchanged, so answers could be looked up by them."
            return "not attempted", why
        return "verified", ""
    try:
        relabelling = relabelling_of(trial.task, public)
    except NotPermutable as error:
        return "not attempted", f"It can't be determined whether the program learns: {error}"
    trial.report("executing the program once more, with other training targets")
    changed = restored.with_name("changed.csv")
    try:
        _repeat(code, changed, relabelling)
    except NotPermutable as error:
        return "not attempted", f"With other training targets, it creates no valid submission: {error}"
    alike = trial.task.known_answers and agreement(restored, changed) >= ALL
    if alike and _standard_error(trial, report, restored) == 0:
        same = "it makes the same predictions, all of them correct: it looks up the answers"
        return "not reproducible", f"With other training targets, {same}."
    if not relabelling.follow(restored, changed):
        same = "its predictions do not change: it does not learn, so the code may contain the answers"
    elif relabelling.renames(restored, changed):
        same = "it predicts exactly the same classes under other names: it may know them without learning"
    elif not (same := _loss(trial, report, relabelling, changed) or _gain(code, report, relabelling, restored)):
        return "verified", "With other training targets, it predicts different values."
    return "not attempted", f"With other training targets, {same}."


def _loss(trial: Trial, report: Report, relabelling: Relabelling, changed: Path) -> str:
    """Return a sentence if predictions for other targets, mapped back, lack most of the submission's skill; else an
    empty string."""
    back, constant = changed.with_name("back.csv"), changed.with_name("constant.csv")
    relabelling.write_back(changed, back)
    relabelling.write_constant(trial.run.path / report.submission_path, constant)
    again, without = trial.scores([back, constant])
    if again is None or without is None or report.score is None:
        return "its predictions can't be graded"
    sign = -1.0 if report.is_lower_better else 1.0
    skill, retained = sign * (report.score - without), sign * (again - without)
    kind = "numbers" if not relabelling.new else "chances" if len(relabelling.targets) > 1 else "classes"
    if retained < RETAINED[kind] * skill and skill > 0:
        return "it predicts much worse than before: its score may not come from learning"
    return ""


def _gain(code: _Code, report: Report, relabelling: Relabelling, restored: Path) -> str:
    """Return a sentence if the program is better with the original classes than with the same classes under other
    names (code that learns does not distinguish these), or if it does not learn that some rows kept their classes;
    else an empty string."""
    if not relabelling.new:
        return ""
    code.trial.report("executing the program again, with other names of the classes")
    relabelling.keeps, back = False, restored.with_name("back.csv")
    worse, again = _compared(code.trial, report, back, partial(_repeat, code, back, relabelling))
    if worse:
        return f"it achieves only {plain(again[0], 6)}: it may know answers without learning"
    if relabelling.renames(restored, restored.with_name("changed.csv"), back):
        return "it predicts the same classes under other names: it may know them without learning"
    return ""


def _repeat(
    code: _Code, restored: Path, relabelling: Relabelling | None = None, nudge: SystemRandom | None = None
) -> _Again:
    """Execute once; return the score and doubts about the data, and store the submission as `restored`, with the
    original classes if none of the training rows kept theirs.

    Raises:
        NotPermutable: The program did not run as before, or created no valid submission.
    """
    trial, random = code.trial, SystemRandom()
    with tempfile.TemporaryDirectory(prefix="permuted-", dir=trial.folder) as folder:
        public = Path(folder) / "public"
        public.mkdir()
        Path(folder).chmod(0o755)
        permutation = permutation_of(trial.task, trial.public, random)
        permutation.write(trial.public, public, nudge)
        if relabelling is not None:
            relabelling.write(public, random)
        submission = trial.execute(public, code.command, code.fill)
        if isinstance(submission, str):
            raise NotPermutable(f"The program did not behave as before: {submission}")
        latest = restored.with_name("latest.csv")
        permutation.restore(submission, latest)
        if relabelling is not None and not relabelling.keeps:
            relabelling.write_back(latest, latest)
    [score] = trial.scores([latest])
    if score is None:
        raise NotPermutable("It created no valid submission.")
    shutil.copyfile(latest, restored)
    if permutation.years and names_dates(code.programs, permutation.ids):
        permutation.doubts.append("The code contains years, and the rerun used different years.")
    return score, permutation.doubts


def _standard_error(trial: Trial, report: Report, restored: Path) -> float:
    """Return the standard error of the score: the larger of the submission's and the repetition's."""
    trial.report("estimating the standard error of the score")
    errors = [trial.standard_error(path) for path in (trial.run.path / report.submission_path, restored)]
    return max((error for error in errors if error is not None), default=UNKNOWN * abs(report.score or 0.0))
