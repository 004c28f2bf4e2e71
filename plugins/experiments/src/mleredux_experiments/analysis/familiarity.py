"""Familiarity and performance: does an agent do better on tasks that its model knows?"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from mleredux.errors import MlereduxError, one_line
from mleredux.models.formats import counted, plain
from pydantic_core import from_json

from mleredux_experiments.inference.errors import Interval
from mleredux_experiments.results.measures import cells, measure
from mleredux_experiments.results.table import Results, Row
from mleredux_experiments.results.uniformity import usual_measure

_LEAST_TASKS = 4


@dataclass(frozen=True)
class Familiarity:
    """The rank correlation between familiarity and performance over tasks.

    Attributes:
        rho: Spearman's rank correlation.
        low, high: Limits of its interval, by Fisher's transformation with the variance of Bonett and Wright (2000).
        p: Two-sided p-value.
    """

    arm: str
    measure: str
    tasks: int
    rho: float
    low: float
    high: float
    p: float

    @property
    def sentence(self) -> str:
        """Return the result in one sentence."""
        answer = "related" if self.low > 0 or self.high < 0 else "no relation shown"
        return (
            f"Familiarity and {self.measure} of {self.arm} over {counted(self.tasks, 'task')}: Spearman's "
            f"ρ = {self.rho:+.2f} ({self.low:+.2f} to {self.high:+.2f}), p = {plain(self.p, 2)}: {answer}."
        )

    def record(self) -> dict[str, Any]:
        """Return the record that `--json` prints."""
        return {"sentence": self.sentence, **asdict(self)}


def familiarity(
    results: Results, arm: str, table: Mapping[str, float], chosen: str | None = None, alpha: float = 0.05
) -> Familiarity:
    """Correlate familiarity with the mean performance of an arm on each task.

    Args:
        table: Familiarity by task, on any scale; a variant of a task uses the value of its competition.

    Raises:
        MlereduxError: Fewer than four tasks have both values, or one of the two does not vary.
    """
    from scipy.stats import spearmanr

    chosen = chosen or usual_measure([results.arm(arm)], averaged=True)
    values = cells(results.arm(arm), measure(chosen), lambda row: row.task if row.task in table else row.base)
    tasks = sorted(values.keys() & table.keys())
    if len(tasks) < _LEAST_TASKS:
        message = f"Only {counted(len(tasks), 'task')} with runs of {arm} and a familiarity value, not {_LEAST_TASKS}."
        raise MlereduxError(message, hint="Add tasks to the table, or run more.")
    known, scores = np.array([table[task] for task in tasks]), np.array([values[task].mean() for task in tasks])
    if not (np.ptp(known) and np.ptp(scores)):
        raise MlereduxError("Familiarity or performance is the same on all tasks.", hint="Choose another --measure.")
    rho, p = map(float, spearmanr(known, scores))
    interval = _interval(rho, len(tasks), alpha)
    return Familiarity(arm, chosen, len(tasks), rho, interval.low, interval.high, p)


def _interval(rho: float, count: int, alpha: float) -> Interval:
    if abs(rho) >= 1:
        return Interval(rho, rho)
    half = NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt((1 + rho**2 / 2) / (count - 3))
    return Interval(math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))


def read_table(path: Path) -> dict[str, float]:
    """Read a CSV file with the columns `task` and `familiarity`.

    Raises:
        MlereduxError: A column is missing, or a value is not a number.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {row["task"]: float(row["familiarity"]) for row in csv.DictReader(file)}
    except (KeyError, TypeError, ValueError, OSError) as error:
        message = f"{path} is not a familiarity table ({one_line(error)})."
        raise MlereduxError(message, hint="Write a CSV with the columns task and familiarity.") from None


def recorded(rows: Iterable[Row], runs: Path) -> dict[str, float]:
    """Return familiarity by task from the gateway's records: the mean log-probability of the tokens in a model's
    answers.

    Only calls that requested log-probabilities are used. These are log-probabilities of the model's output, not of the
    description in its prompt, which providers do not return.

    Args:
        runs: The folder that contains the run directories.
    """
    logprobs: dict[str, list[float]] = {}
    for row in rows:
        try:
            with (runs / row.run / "llm" / "calls.jsonl").open("rb") as file:
                for line in file:
                    logprobs.setdefault(row.task, []).extend(_logprobs(line))
        except OSError:
            continue
    return {task: float(np.mean(values)) for task, values in logprobs.items() if values}


def _logprobs(line: bytes) -> list[float]:
    """Return the log-probabilities of one call, in the format of chat completions or of responses."""
    if b"logprob" not in line:
        return []
    try:
        answer = from_json(line)["response"]
        tokens = [token for choice in answer.get("choices") or () for token in choice["logprobs"]["content"]]
        parts = [part for item in answer.get("output") or () for part in item.get("content") or ()]
        tokens += [token for part in parts for token in part.get("logprobs") or ()]
        return [float(token["logprob"]) for token in tokens if math.isfinite(token["logprob"])]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
