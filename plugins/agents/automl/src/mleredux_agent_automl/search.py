"""The search from start to end, with each step in the log and the trajectory."""

from __future__ import annotations

import dataclasses
import json
import pprint
import time
from typing import Any

import numpy as np
import optuna
from mleredux_agent_baseline.kit import Array, Choice, Journal, NotForBaseline, blend_loss, metric_for, mix, select
from mleredux_agentkit import write

from mleredux_agent_automl.advice import read_advice
from mleredux_agent_automl.folds import folds_for
from mleredux_agent_automl.pipelines import FIRST, Choices, encoders_of, suggest
from mleredux_agent_automl.table import Blend, Table

SEARCH_SHARE = 0.75
"""Share of the time for trials; the rest is for the final fits."""
SOLUTION = """\
\"\"\"Makes the submission: python solution.py DATA_DIR SUBMISSION (needs mleredux-agent-automl).\"\"\"

import sys
from pathlib import Path

from mleredux_agent_automl.table import solve

CHOICES = {choices}

solve(Path(sys.argv[1]), Path(sys.argv[2]), **CHOICES)
"""


class OutOfTime(Exception):
    """Too little time is left to finish a trial."""


class Search:
    """The agent's search, after the sample was submitted."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.task, self.log, self.rollout = journal, journal.task, journal.log, journal.rollout
        self.started = time.time()
        self.advice = read_advice(self.task.description)
        self.options = {"seed": self.task.seed, "cpus": self.task.cpus, "memory_mb": self.task.memory_mb}
        self.options |= {"max_rows": int(self.task.options["max_rows"])}
        self.choices: dict[str, Choices] = {}
        self.seconds: dict[str, float] = {}
        self.fitted: dict[str, list[Array]] = {}

    def run(self) -> None:
        """Read the tables, run the trials, and submit the blend of the best ones."""
        try:
            self._read_tables()
        except (NotForBaseline, ValueError, OSError, KeyError) as error:
            self.log(f"there is nothing to search for: {error}; the sample is submitted")
            self.rollout.say(f"There is nothing to search for: {error}. The sample submission is kept.", is_buggy=True)
        else:
            self._search()
            self._blend()
        self.journal.validate()

    def _read_tables(self) -> None:
        """Read the tables, applying the advice on rows, columns and folds."""
        task, deadline = self.task, self.started + 0.2 * (self.task.deadline - self.started)
        table = self.table = Table(
            task.data_dir,
            self.journal.facts,
            self.advice,
            **self.options,
            deadline=deadline,
        )
        self.folds, how, self.splitter = folds_for(
            self.advice.folds, table.rows, table.heads, table.train.shape[1], int(task.options["folds"]), task.seed
        )
        self.held = np.concatenate([held for _, held in self.folds])
        self.out_of_fold: list[dict[str, Array]] = [{} for _ in table.heads]
        self.metrics = [
            metric_for(table.metric, classes=bool(head.classes), labels=head.form == "label") for head in table.heads
        ]
        advice = json.dumps(self.advice.as_json()) if self.advice else "none"
        summary = f"{table.prepared.describe()}\nfolds: {how}\nadvice: {advice}"
        self.log(summary)
        self.rollout.act(
            "Determine the prediction targets and the available advice.",
            "inspect_tables", {"data_dir": str(task.data_dir)}, summary,
            stage="explore", metric_name=table.metric, seconds=round(time.time() - self.started, 2),
            folds=how, dropped_columns=table.dropped,
        )  # fmt: skip

    def _search(self) -> None:
        """Cross-validate one pipeline after another; fit each new best one to all rows and submit it."""
        task, best = self.task, float("inf")
        end = self.started + SEARCH_SHARE * (task.deadline - self.started)
        end = min(end, self.started + float(task.options["search_seconds"]))
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=task.seed))
        for first in FIRST:
            study.enqueue_trial(first)
        for _ in range(int(task.options["trials"])):
            if time.time() >= end:
                self.log("no time for further trials")
                return
            trial = study.ask()
            loss = self._try(trial, end, first=best == float("inf"))
            if loss is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                continue
            study.tell(trial, loss)
            if loss < best:
                best = loss
                self._submit([[Choice(str(trial.number), 1.0)] for _ in self.table.heads], "improve")

    def _try(self, trial: Any, end: float, *, first: bool) -> float | None:
        """Cross-validate one pipeline; return None if it fails or takes too long."""
        table, name, started = self.table, str(trial.number), time.time()
        labels = any(head.form == "label" for head in table.heads)
        choices = self.choices[name] = suggest(trial, table.columns, self.advice, len(table.train), labels=labels)
        listed = ", ".join(
            f"{key} {f'{value:.3g}' if isinstance(value, float) else value}" for key, value in choices.items()
        )
        metric = self.metrics[0]
        facts: dict[str, Any] = {
            "node_id": f"trial {name}", "stage": "draft" if first else "improve", "model": choices["family"],
            "metric_name": metric.name, "lower_is_better": metric.lower_is_better,
        }  # fmt: skip
        message, arguments = f"Try a pipeline: {listed}.", {"pipeline": choices, "folds": len(self.folds)}
        parts: list[list[Array]] = [[] for _ in table.heads]
        try:
            for done, (train, held) in enumerate(self.folds):
                spent = time.time() - started
                if time.time() > end or (done and not first and started + spent / done * len(self.folds) > end):
                    raise OutOfTime("it would take too long")
                for place in range(len(table.heads)):
                    parts[place] += table.fit(choices, place, train, [table.train.iloc[held]])
        except Exception as error:  # any model may fail on any data; the next one may succeed
            late = isinstance(error, OutOfTime)
            why = str(error) if late else f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            self.log(f"trial {name} ({listed}): {why}")
            extra: dict[str, Any] = {"skipped": True} if late else {"is_buggy": True}
            self.rollout.act(message, "cross_validate", arguments, f"stopped: {why}", **facts, **extra)
            return None
        losses, scores = [], []
        for place, head in enumerate(table.heads):
            held_out = self.out_of_fold[place][name] = np.concatenate(parts[place])
            scores.append(self.metrics[place].score(head.y[self.held], held_out))
            losses.append(blend_loss(self.metrics[place], head.y[self.held], held_out, labels=head.form == "label"))
        score, self.seconds[name] = float(np.mean(scores)), time.time() - started
        self.log(f"trial {name} ({listed}): {metric.name} {score:.5f} in {self.seconds[name]:.1f} s")
        self.rollout.act(
            message, "cross_validate", arguments, f"{metric.name} {score:.6g}",
            **facts, is_buggy=False, validation_metric=score, cv_score=score, seconds=round(self.seconds[name], 2),
        )  # fmt: skip
        return float(np.mean(losses))

    def _blend(self) -> None:
        """Submit a blend of as many of the best pipelines as there is time to fit."""
        left = (self.task.deadline - time.time()) / 4
        cost = {name: 1.5 * seconds / len(self.folds) for name, seconds in self.seconds.items()}
        quick = [name for name in cost if name in self.fitted or cost[name] < left]
        if not quick:
            return
        chosen = [
            select(
                {name: self.out_of_fold[place][name] for name in quick}, head.y[self.held], self.metrics[place],
                labels=head.form == "label",
            )
            for place, head in enumerate(self.table.heads)
        ]  # fmt: skip
        if any(len(choices) > 1 for choices in chosen):
            self._submit(chosen, "ensemble")

    def _submit(self, blend: Blend, stage: str) -> None:
        """Fit unfitted pipelines to all rows, and submit."""
        started, table, metric = time.time(), self.table, self.metrics[0]
        for name in {choice.candidate: None for choices in blend for choice in choices}:
            if name not in self.fitted:
                self.fitted[name] = table.predict(self.choices[name])
        score = float(np.mean([
            self.metrics[place].score(head.y[self.held], mix(self.out_of_fold[place], blend[place]))
            for place, head in enumerate(table.heads)
        ]))  # fmt: skip
        table.write(self.task.submission, blend, self.fitted)
        self._write_solution(blend)
        self.journal.version += 1
        weights = {head.name: _weights(choices) for head, choices in zip(table.heads, blend, strict=True)}
        done = f"{metric.name} {score:.6g} on held-out folds"
        self.log(f"submitted version {self.journal.version}: {done}; trials {weights}")
        self.rollout.act(
            "Fit the best to all training rows, and submit the predictions.",
            "write_submission", {"trials": weights},
            f"{done}; wrote {self.task.submission.name} and code/solution.py",
            node_id=f"version {self.journal.version}", stage=stage, is_buggy=False, metric_name=metric.name,
            lower_is_better=metric.lower_is_better, validation_metric=score, cv_score=score,
            submission_version=self.journal.version, seconds=round(time.time() - started, 2),
        )  # fmt: skip

    def _write_solution(self, blend: Blend) -> None:
        """Write a script with the final choices that reproduces the submission."""
        used = {choice.candidate for choices in blend for choice in choices}
        choices = {
            "facts": dataclasses.asdict(self.journal.facts),
            "advice": self.advice.as_json(),
            "blend": [_weights(chosen) for chosen in blend],
            "pipelines": {
                name: {**chosen, "encoders": encoders_of(self.table.columns, self.advice, chosen)}
                for name, chosen in self.choices.items()
                if name in used
            },
            "folds": self.splitter,
            **self.options,
        }
        write(
            self.task.output_dir / "code" / "solution.py",
            SOLUTION.format(choices=pprint.pformat(choices, width=100, sort_dicts=False)),
        )


def _weights(choices: list[Choice]) -> dict[str, float]:
    return {choice.candidate: choice.weight for choice in choices}
