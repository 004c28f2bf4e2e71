"""Export runs as documents of other systems, in formats that plugins register."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mleredux import Report, Run, Task
from mleredux._core.data.datastore import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.sandboxes.variables import protected_variables, secret_values
from mleredux.errors import MlereduxError, PluginError, file_errors, one_line
from mleredux.models import State
from mleredux.models.base import parse
from mleredux.models.export import Format
from mleredux.models.formats import plain
from mleredux.plugin.files import Mask

from mleredux_rollout.documents import parse_rollout, read_bytes
from mleredux_rollout.models import Trajectory

_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$")
"""Names of variables whose values are masked, in addition to keys of language models, passwords in URLs, and the run's
own secrets."""
_CANARY = re.compile(rb"mleredux-canary-[0-9a-f]{40}")


class ExportedRun:
    """A run that has ended, as passed to formats: its documents contain no secrets.

    Attributes:
        run: The run itself, whose other files are unchanged.
        task: Its task; None if it is not installed.
    """

    def __init__(self, run: Run, catalogue: Catalogue, hidden: Collection[str]) -> None:
        self.run = run
        self._mask = Mask({*hidden, *secret_values(run.spec, catalogue)})
        try:
            self.task: Task | None = catalogue.task(run.spec.task)
        except MlereduxError:
            self.task = None

    @property
    def report(self) -> Report | None:
        """The report, if there is one."""
        content = self._content("report.json")
        return Report.model_validate(parse(content)) if content and self.run.report else None

    @property
    def rollout(self) -> Trajectory | None:
        """The trajectory, if there is one. It is read on each access, so that few trajectories are in memory at the
        same time.
        """
        content = self._content("rollout.json")
        return parse_rollout(content) if content else None

    @property
    def score(self) -> float | None:
        """The score of a valid submission."""
        return report.score if (report := self.report) and report.valid_submission else None

    @property
    def license(self) -> str | None:
        """The license of the task's data, if declared (SPDX)."""
        task = self.task
        while task is not None and task.license is None:
            task = task.base
        return task.license if task is not None else None

    @property
    def public(self) -> Path | None:
        """The folder of the task's public files, if they are prepared on this machine."""
        prepared = DataStore(self.run.spec.data_dir).find(self.task) if self.task is not None else None
        return prepared.public if prepared is not None else None

    def quotes_canary(self) -> bool:
        """Return whether its documents contain a canary, which occurs only next to the answers of an installation."""
        return any(_CANARY.search(self._content(name)) for name in ("rollout.json", "report.json"))

    def _content(self, name: str) -> bytes:
        path = self.run.path / name
        return self._mask.hide(read_bytes(path)) if path.is_file() else b""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters for the runs to export.

    Attributes:
        min_score: The worst score, in the direction of each run's metric.
        verified: Whether to export only results whose code was executed again with the same score.
        licenses: Accepted licenses of the tasks' data; empty: any license, or none.
        everything: Whether training data also includes cancelled runs and runs without a step of the agent, and
            published results also include those whose test score was disclosed.
    """

    min_score: float | None = None
    verified: bool = False
    licenses: tuple[str, ...] = ()
    everything: bool = False


def export(
    runs: Iterable[Run],
    chosen: Format,
    path: Path,
    catalogue: Catalogue,
    *,
    filters: Filters | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[list[Path], dict[str, str]]:
    """Write runs in a format: to the file `path`, or to one file per run in the folder `path`.

    Args:
        runs: The runs.
        chosen: The format.
        path: The file or folder to write to.
        catalogue: The plugins.
        filters: Filters for the runs.
        options: Options of the format.

    Returns:
        The files, and the reason for each run that was excluded.

    Raises:
        MlereduxError: A run has not ended, all runs are excluded, or a file can't be written.
        PluginError: The format fails.
    """
    if unknown := sorted(set(options or ()) - set(chosen.options)):
        known = ", ".join(sorted(chosen.options)) or "none"
        raise MlereduxError(f"Format {chosen.id} has no option {', '.join(unknown)}.", hint=f"Its options: {known}.")
    keys = {name for name in protected_variables(catalogue) if not name.startswith("MLEREDUX_")}
    hidden = {value for name, value in os.environ.items() if name in keys or _SECRET.search(name)}
    hidden |= {_password(address) for value in os.environ.values() for address in value.split()}
    candidates = [ExportedRun(run, catalogue, hidden) for run in {run.id: run for run in runs}.values()]
    left_out = {item.run.id: why for item in candidates if (why := _exclusion(item, chosen, filters or Filters()))}
    exported = [item for item in candidates if item.run.id not in left_out]
    if not exported:
        reasons = " ".join(f"{name}: {why}." for name, why in left_out.items())
        raise MlereduxError(f"There are no runs to export. {reasons}", hint="Choose other runs or filters.")
    if chosen.together or (len(candidates) == 1 and path.suffix and not path.is_dir()):
        files = {path: exported}
    else:
        files = {path / f"{item.run.id}{chosen.suffix}": [item] for item in exported}
    settings = {**chosen.options, **(options or {})}
    for place, members in files.items():
        _write(place, chosen, members, settings)
    return list(files), left_out


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""


def _exclusion(item: ExportedRun, chosen: Format, filters: Filters) -> str | None:
    """Return the reason for excluding a run."""
    if not item.run.state.final:
        raise MlereduxError(f"Run {item.run.id} is {item.run.state}.", hint="Wait until it has ended.")
    for need in chosen.needs:
        if getattr(item, need) is None:
            return {"public": "the public files of its task are not prepared here"}.get(need, f"it has no {need}")
    if item.quotes_canary():
        return "it quotes the canary, which is stored next to the answers"
    report, score = item.report, item.score
    if chosen.trusted and report is not None and not report.verdict.trusted:
        return f"its result is {report.verdict.status}"
    if chosen.trusted and not filters.everything and (why := _default_exclusion(item, chosen)) is not None:
        return f"{why} (--all includes it)"
    if filters.verified and (report is None or report.verdict.status != "verified"):
        return "its result is not verified"
    if filters.min_score is not None:
        if report is None or score is None:
            return "it has no score"
        if score > filters.min_score if report.is_lower_better else score < filters.min_score:
            return f"its score {plain(score, 6)} is worse than {plain(filters.min_score, 6)}"
    if filters.licenses and item.license not in filters.licenses:
        return f"the license of its task's data is {item.license or 'not declared'}"
    return None


def _default_exclusion(item: ExportedRun, chosen: Format) -> str | None:
    """Return the reason for excluding a run from training data or published results, unless all are requested."""
    if "rollout" not in chosen.needs:
        return "its test score was revealed" if item.report is not None and not item.report.verdict.ranked else None
    if item.run.state is State.CANCELLED:
        return "it was cancelled"
    steps = item.rollout.steps if item.rollout is not None else []
    return None if any(step.source == "agent" for step in steps) else "its agent did nothing"


def _write(path: Path, chosen: Format, members: Sequence[ExportedRun], options: Mapping[str, Any]) -> None:
    """Write one file atomically."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with file_errors(MlereduxError, f"{path} can't be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                for piece in _pieces(chosen, members, options):
                    file.write(piece)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _pieces(chosen: Format, members: Sequence[ExportedRun], options: Mapping[str, Any]) -> Iterable[bytes]:
    try:
        yield from chosen.write(members, options)
    except (MlereduxError, GeneratorExit):
        raise
    except Exception as error:  # a plugin's code may raise anything
        reason = one_line(error)[:300]
        raise PluginError(f"Format {chosen.id} failed ({reason}).", hint="Fix or update its plugin.") from error
