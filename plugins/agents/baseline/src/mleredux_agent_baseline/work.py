"""All steps of the agent, each logged and traced."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mleredux_agent_baseline.export import write_solution
from mleredux_agent_baseline.features import kinds_for
from mleredux_agent_baseline.files import NotForBaseline
from mleredux_agent_baseline.fit import Choice, candidates_for, mix, select
from mleredux_agent_baseline.models import Candidate
from mleredux_agent_baseline.process import Journal
from mleredux_agent_baseline.search import OutOfTime, Search, Trial
from mleredux_agent_baseline.settings import search_end
from mleredux_agent_baseline.solve import Prepared, predict, useful_threads, write_submission


class Work:
    """The work of the agent; `run` executes the steps after the sample was submitted."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.task, self.facts = journal, journal.task, journal.facts
        self.log, self.rollout = journal.log, journal.rollout
        self.threads = 1
        self._last_write, self._blended = 0.0, 0

    def run(self) -> None:
        """Read the tables, try the candidates, blend them, and fit the final models."""
        try:
            prepared = self.read_tables()
        except (NotForBaseline, ValueError, OSError, KeyError) as error:
            self.log(f"the baseline does not support this task: {error}; the sample is submitted")
            self.rollout.say(
                f"The baseline does not support this task: {error}. The sample submission is kept.", is_buggy=True
            )
            self.journal.validate()
            return
        search = self.make_search(prepared)
        trials = self.try_all(prepared, search)
        if trials:
            self.finish(prepared, search)
        self.journal.validate()

    def read_tables(self) -> Prepared:
        """Read the tables and infer the prediction problem."""
        task = self.task
        started = time.time()
        deadline = started + 0.2 * (task.deadline - started)
        prepared = Prepared(
            task.data_dir, self.facts, seed=task.seed, memory_mb=task.memory_mb,
            max_rows=task.options["max_rows"], deadline=deadline,
        )  # fmt: skip
        summary = prepared.describe()
        self.threads = useful_threads(prepared, task.cpus)
        for line in [f"metric: {self.facts.metric or 'unknown'}", *summary.splitlines()]:
            self.log(line)
        self.rollout.act(
            "Determine the prediction targets and the features.",
            "inspect_tables", {"data_dir": str(task.data_dir)}, summary,
            stage="explore", metric_name=self.facts.metric, seconds=round(time.time() - started, 2),
        )  # fmt: skip
        return prepared

    def make_search(self, prepared: Prepared) -> Search:
        """Return the folds and the features that candidates share."""
        task, profile = self.task, prepared.profile
        end = search_end(task, prepared.train.size, _models(prepared), heavy=bool(profile.texts or profile.images))
        return Search(
            prepared.features, prepared.heads, self.facts.metric, folds=task.options["folds"],
            seed=task.seed, threads=self.threads, end=end,
        )  # fmt: skip

    def try_all(self, prepared: Prepared, search: Search) -> list[Trial]:
        """Cross-validate the candidates; the first one that succeeds replaces the sample submission."""
        kinds = kinds_for(prepared.profile)
        by_head = [candidates_for(head, kinds) for head in prepared.heads]
        names = dict.fromkeys(candidate for candidates in by_head for candidate in candidates)
        rows, columns = prepared.train.shape
        trials: list[Trial] = []
        for candidate in names:
            heads = [place for place, candidates in enumerate(by_head) if candidate in candidates]
            if not candidate.min_rows <= rows <= candidate.max_rows or columns > candidate.max_columns:
                continue
            if time.time() + sum(trial.fit_seconds for trial in trials[:1]) > search.end:
                self.log("no time for further candidates")
                break
            if len(trials) >= self.task.options["candidates"]:
                self.log("no further candidates were requested")
                break
            trial = self.try_one(candidate, heads, search)
            if trial is None:
                continue
            trials.append(trial)
            if all(search.predictions) and time.time() > self._last_write + max(60.0, 4 * trial.fit_seconds):
                self.write(prepared, search, "improve" if self._last_write else "draft")
        return trials

    def try_one(self, candidate: Candidate, heads: list[int], search: Search) -> Trial | None:
        """Cross-validate one candidate; return None if it fails or takes too long."""
        arguments = {"model": candidate.name, "features": candidate.features, "folds": len(search.folds)}
        metric = search.main_metric
        facts: dict[str, Any] = {
            "node_id": candidate.name, "stage": "draft", "model": candidate.name,
            "metric_name": metric.name, "lower_is_better": metric.lower_is_better,
        }  # fmt: skip
        message, started = f"Try {candidate.name} on {candidate.features} features.", time.time()
        try:
            trial = search.try_candidate(candidate, heads)
        except OutOfTime:
            self.log(f"{candidate.name}: would take too long")
            extra = {**facts, "skipped": True, "seconds": round(time.time() - started, 2)}
            self.rollout.act(message, "cross_validate", arguments, "stopped: it would take too long", **extra)
            return None
        except Exception as error:  # any model may fail on some data; the next may succeed
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            self.log(f"{candidate.name}: failed ({why})")
            extra = {**facts, "is_buggy": True, "seconds": round(time.time() - started, 2)}
            self.rollout.act(message, "cross_validate", arguments, f"failed: {why}", **extra)
            return None
        self.log(f"{candidate.name}: {metric.name} {trial.score:.5f} ± {trial.spread:.5f} in {trial.seconds:.1f} s")
        self.rollout.act(
            message, "cross_validate", arguments,
            f"{metric.name} {trial.score:.6g} (standard deviation over folds {trial.spread:.3g})",
            **facts, is_buggy=False, validation_metric=trial.score, cv_score=trial.score, cv_std=trial.spread,
            fold_scores=trial.fold_scores, by_target=trial.by_target, warnings=trial.warnings,
            seconds=round(trial.seconds, 2),
        )  # fmt: skip
        return trial

    def finish(self, prepared: Prepared, search: Search) -> None:
        """Submit a final blend, refitted on all rows, if more candidates were tried since the previous blend."""
        if all(search.predictions) and len(search.predictions[0]) > self._blended:
            self.write(prepared, search, "ensemble")

    def write(self, prepared: Prepared, search: Search, stage: str) -> None:
        """Blend the candidates tried so far, fit the blend to all rows, and submit it."""
        task, started = self.task, time.time()
        choices = [
            select(search.predictions[place], search.truth(place), search.metrics[place], labels=head.form == "label")
            for place, head in enumerate(prepared.heads)
        ]
        scores = [
            search.metrics[place].score(search.truth(place), mix(search.predictions[place], chosen))
            for place, chosen in enumerate(choices)
        ]
        score, metric = float(np.mean(scores)), search.main_metric
        predictions = predict(prepared, choices, self.facts.metric, task.seed, self.threads, self.log)
        write_solution(
            task.output_dir / "code" / "solution.py", self.facts, choices, task.seed, task.cpus,
            task.memory_mb, task.options["max_rows"],
        )  # fmt: skip
        write_submission(prepared.tables.sample_path, task.submission, prepared.heads, predictions)
        self.journal.version += 1
        self._last_write, self._blended = time.time(), len(search.predictions[0])
        blend = {head.name: _weights(chosen) for head, chosen in zip(prepared.heads, choices, strict=True)}
        self.log(
            f"submitted version {self.journal.version}: {metric.name} {score:.5f} on held-out folds; blend {blend}"
        )
        self.rollout.act(
            "Blend the best candidates, fit them to all training rows, and submit the predictions.",
            "write_submission", {"blend": blend},
            f"{metric.name} {score:.6g} on held-out folds; wrote {task.submission.name} and code/solution.py",
            node_id=f"blend {self.journal.version}", stage=stage, model="blend", is_buggy=False,
            metric_name=metric.name, lower_is_better=metric.lower_is_better, validation_metric=score, cv_score=score,
            submission_version=self.journal.version, seconds=round(time.time() - started, 2),
        )  # fmt: skip


def _models(prepared: Prepared) -> int:
    """Return the number of models: one per target, more if there are many classes."""
    return sum(1 + len(head.classes) // 20 for head in prepared.heads)


def _weights(choices: list[Choice]) -> dict[str, float]:
    return {choice.candidate: round(choice.weight, 3) for choice in choices}
