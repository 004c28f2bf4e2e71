"""Micro tasks: tables of 200 rows with known structure, generated in milliseconds and equal on every platform.

Only the standard library is used: numbers come from SHAKE-256, arithmetic is that of IEEE 754 with exactly rounded sums
(`math.fsum`), and numbers are written with fixed decimals. No stream, sum or format depends on a library's version.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mleredux_techniques._kit.planting.competition import ANSWERS, BOARD, SAMPLE, TEST, TRAIN, PlantedCompetition
from mleredux_techniques._kit.planting.composition import ID
from mleredux_techniques._kit.planting.seeds import NUMBER, Seed
from mleredux_techniques._kit.planting.synthetic import TARGET, generated_competition, parsed

REVISION = "1"
"""Part of the version of all micro tasks; increased whenever the data for a seed changes."""
NAME = re.compile(rf"synthetic-micro-(easy-|hard-)?(public-)?{NUMBER}")
TRUTH, CEILING = "truth.json", "ceiling.csv"
"""Private files: the structure, and the best predictions that anyone who knows it can make."""
METRICS = (("rmse", "minimize"), ("roc-auc", "maximize"), ("accuracy", "maximize"))
_TRAIN, _ROWS, _DRAWS, _ENTRIES = 100, 200, 1 << 15, 20


@dataclass(frozen=True)
class Level:
    """A level of difficulty.

    Attributes:
        noise: Standard deviation of the target's noise, relative to that of the features' contribution.
        useless: Number of features that have no effect.
        leak: Probability of a column that reveals the target in the training table alone.
    """

    noise: float
    useless: int
    leak: float


LEVELS = {"easy": Level(0.25, 1, 0.0), "medium": Level(0.5, 2, 0.5), "hard": Level(0.8, 5, 1.0)}


class Stream:
    """Random numbers that depend on nothing but the key."""

    def __init__(self, key: bytes) -> None:
        self._words = iter(struct.unpack(f"<{_DRAWS}I", hashlib.shake_256(key).digest(4 * _DRAWS)))

    def uniform(self) -> float:
        """Return a number from 0 to 1."""
        return int(next(self._words)) / 4294967296

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to `limit` - 1."""
        return int(self.uniform() * limit)

    def normal(self) -> float:
        """Return an approximately normal number: four uniform ones, standardized."""
        return (self.uniform() + self.uniform() + self.uniform() + self.uniform() - 2) * math.sqrt(3)

    def normals(self, count: int) -> list[float]:
        """Return `count` approximately normal numbers."""
        return [self.normal() for _ in range(count)]

    def shuffled(self, count: int) -> list[int]:
        """Return the numbers from 0 to `count` - 1 in random order."""
        return [place for _, place in sorted((next(self._words), place) for place in range(count))]


def micro_competition(name: str) -> PlantedCompetition | None:
    """Return the competition `synthetic-micro[-easy|-hard][-public]-SEED`; None for other names."""
    if (match := parsed(NAME, name)) is None:
        return None
    seed, difficulty = match
    grader, direction = METRICS[Stream(seed.key("micro metric", difficulty)).below(len(METRICS))]
    task = generated_competition(name, f"Synthetic micro table {seed.number} ({difficulty})", seed, grader, direction)
    prepare = partial(_prepare, seed=seed, difficulty=difficulty, metric=grader)
    tags = (*task.tags, "micro", difficulty)
    return task.model_copy(update={"version": f"micro{REVISION}.{seed.mark}", "prepare": prepare, "tags": tags})


def _prepare(raw: Path, public: Path, private: Path, *, seed: Seed, difficulty: str, metric: str) -> None:
    stream, level = Stream(seed.key("micro table", difficulty)), LEVELS[difficulty]
    signal, columns, truth = _features(stream, level)
    numeric = metric == "rmse"
    noisy = [value + level.noise * noise for value, noise in zip(signal, stream.normals(_ROWS), strict=True)]
    cut = sorted(signal)[80 + stream.below(40)]

    def written(values: Iterable[float]) -> list[str]:
        """Return predictions: numbers, or classes."""
        return [f"{100 + 25 * value:.2f}" if numeric else str(int(value > cut)) for value in values]

    target = written(noisy)
    if stream.uniform() < level.leak:
        values = [25 * value if numeric else int(value > cut) for value in noisy[:_TRAIN]]
        values += [values[stream.below(_TRAIN)] for _ in range(_ROWS - _TRAIN)]
        columns.append([f"{value + 0.1 * stream.normal():.3f}" for value in values])
        truth.append({"role": "leak"})
    order, ids = stream.shuffled(len(columns)), stream.shuffled(_ROWS)
    names = [f"x{place:02d}" for place in range(1, len(columns) + 1)]
    rows = [[str(ids[row]), *(columns[place][row] for place in order)] for row in range(_ROWS)]
    _write(public / TRAIN, [ID, *names, TARGET], [[*rows[row], target[row]] for row in range(_TRAIN)])
    _write(public / TEST, [ID, *names], rows[_TRAIN:])

    tested, test = [row[0] for row in rows[_TRAIN:]], signal[_TRAIN:]
    ceiling = [f"{value:.4f}" for value in test] if metric == "roc-auc" else written(test)
    constant = "0.5" if metric == "roc-auc" else written([0.0])[0]
    for path, predictions in (
        (public / SAMPLE, [constant] * len(tested)), (private / ANSWERS, target[_TRAIN:]), (private / CEILING, ceiling)
    ):  # fmt: skip
        _write(path, [ID, TARGET], list(map(list, zip(tested, predictions, strict=True))))
    board = _board(metric, test, target[_TRAIN:], written, stream)
    (private / BOARD).write_text("score\n" + "".join(f"{score:.6f}\n" for score in board), encoding="utf-8")
    facts = {name: truth[place] for name, place in zip(names, order, strict=True)}
    content = {"difficulty": difficulty, "noise": level.noise, "columns": facts}
    (private / TRUTH).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _features(stream: Stream, level: Level) -> tuple[list[float], list[list[str]], list[dict[str, object]]]:
    """Return the standardized contribution of all features per row, their columns, and the role of each."""
    signal, columns, truth = [0.0] * _ROWS, list[list[str]](), list[dict[str, object]]()

    def add(effect: Sequence[float]) -> None:
        for row, value in enumerate(effect):
            signal[row] += value

    linear = [stream.normals(_ROWS) for _ in range(2 + stream.below(3))]
    for place, column in enumerate(linear):
        weight = (0.4 + stream.uniform()) * (1 if stream.below(2) else -1)
        curved = place == 0 and bool(stream.below(2))
        add([weight * (value * value if curved else value) for value in column])
        truth.append({"role": "square" if curved else "linear", "weight": weight})
    weight = 0.8 * stream.normal()
    add([weight * left * right for left, right in zip(linear[0], linear[1], strict=True)])
    truth[0]["product"] = truth[1]["product"] = weight
    useless = [stream.normals(_ROWS) for _ in range(level.useless)]
    truth += [{"role": "useless"} for _ in useless]
    for place, column in enumerate([*linear, *useless]):
        shift, scale = 40 * stream.uniform() - 20, 0.5 + 30 * stream.uniform()
        cells = [f"{shift + scale * value:.3f}" for value in column]
        missing = place == len(linear) - 1  # more often missing if the value is large
        hidden = [missing and stream.uniform() < (0.3 if value > 0.5 else 0.05) for value in column]
        columns.append(["" if hide else cell for cell, hide in zip(cells, hidden, strict=True)])
        truth[place]["missing"] = "MNAR" if missing else None
    effects = stream.normals(3 + stream.below(4))
    kinds = [stream.below(len(effects)) for _ in range(_ROWS)]
    add([effects[kind] for kind in kinds])
    columns.append([chr(ord("a") + kind) for kind in kinds])
    truth.append({"role": "category", "effects": dict(zip("abcdef", effects, strict=False))})
    mean = math.fsum(signal) / _ROWS
    spread = math.sqrt(math.fsum((value - mean) * (value - mean) for value in signal) / _ROWS)
    return [(value - mean) / spread for value in signal], columns, truth


def _board(
    metric: str, signal: list[float], target: list[str], written: Callable[[Iterable[float]], list[str]], stream: Stream
) -> list[float]:
    """Return the scores of predictions based on a growing share of the contribution, best first."""
    scores = []
    for share in (entry / _ENTRIES for entry in range(_ENTRIES)):
        if metric == "rmse":
            predictions = written(share * value for value in signal)
            errors = [float(value) - float(truth) for value, truth in zip(predictions, target, strict=True)]
            scores.append(-math.sqrt(math.fsum(error * error for error in errors) / len(errors)))
            continue
        guesses = [share * value + (1 - share) * stream.normal() for value in signal]
        right = sum(map(str.__eq__, written(guesses), target)) / len(target)
        scores.append(right if metric == "accuracy" else _auc(guesses, target))
    return [abs(score) for score in sorted(scores, reverse=True)]


def _auc(guesses: list[float], target: list[str]) -> float:
    ones, zeros = ([guess for guess, kind in zip(guesses, target, strict=True) if kind == name] for name in "10")
    return sum(high > low for high in ones for low in zeros) / (len(ones) * len(zeros))


def _write(path: Path, head: list[str], rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    path.write_bytes(text.getvalue().encode())
