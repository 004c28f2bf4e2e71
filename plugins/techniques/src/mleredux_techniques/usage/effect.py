"""The gain of a technique that a program declares as a switch: the program with and without it, and a reference.

A program declares a step by reading the environment variable `MLEREDUX_WITHOUT`: if its value is the technique's name,
the program leaves the step out. Both forms are executed on the competition's public files. The gain is measured against
the better of the program without the step and reference models without the technique, so that sabotaging the program
without the step gains nothing.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from mleredux.models.formats import plain
from mleredux.plugin.task import Task
from mleredux_programs import run_confined
from pydantic import BaseModel, ConfigDict

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Array, Dataset, Instance
from mleredux_techniques._kit.data.splits import Pool
from mleredux_techniques._kit.data.threads import one_thread
from mleredux_techniques._kit.judging.comparison import difference
from mleredux_techniques._kit.judging.plans import across, by_part, predicted, rows_of
from mleredux_techniques._kit.judging.scorer import Scorer, scorer
from mleredux_techniques._kit.vocabulary.preprocessing import matrices

SWITCH = "MLEREDUX_WITHOUT"
FILE = "technique_use.json"
SECONDS = 600.0


class Use(BaseModel):
    """The gain of one technique.

    Attributes:
        gain: Gain in the metric, in units of the learnable range (the score of the truth minus that of a constant);
            None if the program could not be executed.
        reward: The gain, from 0 to 1; 0 if it is not significant.
        why: The figures, or the reason why they are missing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    technique: str
    gain: float | None
    reward: float
    why: str


class TechniqueUse(BaseModel):
    """The gains of the techniques of a run.

    Attributes:
        reward: The sum of the rewards, at most 1; None if no program declares a switch.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    task: str
    reward: float | None
    uses: tuple[Use, ...]


def switches(text: str, techniques: Iterable[str]) -> list[str]:
    """Return the techniques that a program names next to the switch; empty unless it is a Python program with one."""
    try:
        words = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [name for name in techniques if name in words] if SWITCH in words else []


def uses_of(program: str, names: Iterable[str], task: Task, dataset: Dataset, public: Path) -> list[Use]:
    """Execute a program with all techniques, then without each of them, and return the gain of each.

    Args:
        dataset: The competition's data, with test labels.
        public: The competition's public files.

    Raises:
        SandboxError: This machine does not allow processes to be confined.
    """
    inputs = {path.name: path.read_bytes() for path in public.iterdir() if path.is_file()}
    inputs["program.py"] = program.encode()
    instance = Instance(dataset, {}, task)
    with one_thread():
        judge, data = scorer(dataset, task), across(dataset)
        # the best reference model with all columns, on the same parts of the test set
        x = matrices(rows_of(data, data.splits[0], {}))
        by_model = by_part(instance, data, data.splits[0], predicted(data, data.splits[0], x))
        known = by_model[:, int(by_model.mean(axis=0).argmin())]
    whole = _losses(inputs, "", judge, instance, data)
    uses = []
    for name in names:
        losses = _losses(inputs, name, judge, instance, data)
        if whole is None or losses is None:
            text = f"The program writes no valid predictions {f'without {name}' if losses is None else 'here'}."
            uses.append(Use(technique=name, gain=None, reward=0.0, why=text))
            continue
        best, what = min((losses, f"without {name}"), (known, "by reference models"), key=lambda data: data[0].mean())
        gain = difference(best, whole, 0.0)
        share = gain.mean / judge.unit
        scores = [plain(judge.shown(float(data.mean())), 4) for data in (whole, losses, known)]
        text = f"{judge.title}: {scores[0]} with it, {scores[1]} without it, {scores[2]} by reference models;"
        text += f" it gains {share:+.3f} over the score {what}" + ("." if gain.significant else ", within noise.")
        reward = round(float(np.clip(share, 0, 1)), 6) if gain.significant else 0.0
        uses.append(Use(technique=name, gain=round(share, 6), reward=reward, why=text))
    return uses


def _losses(inputs: Mapping[str, bytes], without: str, judge: Scorer, instance: Instance, data: Pool) -> Array | None:
    """Return the losses of a program's predictions on parts of the test set; None if there are no valid predictions."""
    file = instance.base.submission.file
    variables = {"MLEREDUX_DATA_DIR": ".", "MLEREDUX_OUTPUT_DIR": ".", "MLEREDUX_SUBMISSION": file, SWITCH: without}
    written = run_confined(["program.py"], inputs, [file], seconds=SECONDS, variables=variables).files.get(file, b"")
    try:
        return by_part(instance, data, data.splits[0], [predictions(written, judge, instance, data)])[:, 0]
    except Exception:  # a program may write anything
        return None


def predictions(written: bytes, judge: Scorer, instance: Instance, data: Pool) -> Array:
    """Return a submission's predictions in the form of reference models, in the order of the test rows."""
    import pandas as pd

    test, submission = instance.dataset.test, instance.base.submission
    row, first = submission.id_columns[0], judge.task.submission.target_columns[0]
    table = pd.read_csv(io.BytesIO(written))
    table = table.set_index(table[row].map(class_name)).loc[test[row].map(class_name)]
    if judge.form == "numbers":
        return np.asarray((table[[first]].to_numpy(dtype=float) - data.codes.mean()) / (data.codes.std() + 1e-12))
    if judge.form == "scores":
        share = table[first].to_numpy(dtype=float)
        return np.column_stack([1 - share, share][:: 1 if judge.positive else -1])
    if judge.form == "labels":
        labels = table[first].map(class_name).to_numpy(dtype=str)
        return np.asarray(labels[:, None] == np.array(judge.names)[None], dtype=float)
    columns = {class_name(name): table[name].to_numpy(dtype=float) for name in submission.target_columns}
    return np.column_stack([columns.get(name, np.zeros(len(table))) for name in judge.names])
