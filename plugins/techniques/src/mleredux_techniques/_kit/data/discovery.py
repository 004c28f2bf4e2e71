"""Convert the prepared files of any competition to a `Dataset`: based on its declaration if available, else on its
data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from mleredux.errors import DataError, NotApplicable
from mleredux.plugin.task import Task

from mleredux_techniques._kit.data import columns
from mleredux_techniques._kit.data.dataset import Dataset, Frame, Problem, Series
from mleredux_techniques._kit.data.folders import labeled
from mleredux_techniques._kit.data.images import Place, with_images
from mleredux_techniques._kit.data.structure import structure_of
from mleredux_techniques._kit.data.tables import columns_of, find_tables, read_table, stem

_WITHOUT_TABLES = ("Image", "Audio", "Video", "Object Detection")


def has_table(task: Task) -> bool:
    """Return whether a task may have a table with features of all kinds, judged by its category."""
    return not task.category.startswith(_WITHOUT_TABLES)


@dataclass(frozen=True)
class Source:
    """The sources of a dataset: paths relative to the public folder; `test` is None if there is no test table."""

    train: str
    test: str | None


DESCRIBED = Source("described_train.csv", "described_test.csv")
"""The tables that are written out, because image descriptions were added."""


def discover(task: Task, prepared: Path, *, images: bool = True) -> tuple[Dataset, Source]:
    """Load all rows of a competition's data (a sample, if they describe images).

    Args:
        task: The competition task.
        prepared: Its prepared folder with `public` and `private`.
        images: Whether to add columns that describe the images, if the task is about images.

    Raises:
        NotApplicable: The competition has no table with a target, or its answers do not label all rows; the message
            gives the reason.
        DataError: A table can't be read.
    """
    import pandas as pd

    public = prepared / "public"
    wanted = _wanted(task, public)
    answers = _answers(task, prepared)
    places: list[Place] = []
    try:
        path, test_path, targets = _find_train(task, public, wanted)
        train = read_table(path)
    except NotApplicable:
        pictures = _images_with_labels(task, public, wanted, answers) if images and not has_table(task) else None
        if pictures is None:
            raise
        (train, places), path, test_path = pictures, public, None
        targets = (str(train.columns[1]),)
    test = read_table(test_path) if test_path else answers[[c for c in answers.columns if c not in (*targets, *wanted)]]
    target, thumbnail = targets[0], tuple[str, ...]()
    if images and not has_table(task):
        train, test, thumbnail = with_images(public, train, test, places)
        if places and not thumbnail:
            raise NotApplicable(f"The test images of {task.id} can't be read, or its rows do not name them.")
    ids = _ids(task, train, test)
    labels = _labels(task, test, answers, _decoded(task, answers, targets, wanted), ids)
    features = tuple(c for c in train.columns if c in test.columns and c not in targets and c not in ids)
    train = train[train[target].notna()].reset_index(drop=True)
    keep = labels[target].notna().to_numpy()
    test, labels = test[keep].reset_index(drop=True), labels[keep].reset_index(drop=True)
    if not len(train) or not len(test):
        raise NotApplicable(f"{task.id} has no rows with a known {target!r}, in {path.name} or in its answers.")
    problem: Problem = "regression"
    if not columns.is_numeric_target(train[target], task.metric.id):
        problem = "binary" if train[target].nunique() <= 2 else "multiclass"
        if train[target].nunique() > 0.5 * len(train):
            raise NotApplicable(
                f"The target {target!r} of {task.id} is neither a number nor a class: nearly all values differ."
            )
    kinds = {name: columns.kind_of(train[name]) for name in (*ids, *features)}
    frames = []
    for frame, truth in ((train, train), (test, labels)):
        cells = {name: columns.normalised(frame[name], kinds[name]) for name in (*ids, *features)}
        cells |= {name: truth[name] for name in targets}
        numeric = problem == "regression"
        cells[target] = truth[target].astype(float) if numeric else columns.as_classes(truth[target])
        frames.append(pd.DataFrame(cells))
    if problem != "regression":
        frames[1][target] = columns.same_spelling(frames[1][target], set(frames[0][target]))
    draft = Dataset(
        task=task.id,
        problem=problem,
        train=frames[0],
        test=frames[1],
        target=target,
        targets=targets,
        ids=ids,
        features=features,
        kinds=kinds,
        outputs=wanted or targets,
        metric=task.metric.id,
        direction=task.direction,
        train_rows=len(frames[0]),
        test_rows=len(frames[1]),
        thumbnail=thumbnail,
    )
    structure = structure_of(draft)
    declared = [leak.model_dump(mode="json") for leak in task.known_leaks]
    source = Source(str(path.relative_to(public)), str(test_path.relative_to(public)) if test_path else None)
    falling = structure.time in structure.falling
    dataset = replace(draft, group=structure.group, time=structure.time, falling=falling, known_leaks=declared)
    return dataset, DESCRIBED if thumbnail else source


def _wanted(task: Task, public: Path) -> tuple[str, ...]:
    """Return the columns that a submission predicts."""
    submission = task.submission
    if submission.target_columns or submission.sample is None:
        return submission.target_columns
    sample = public / submission.sample
    names = columns_of(sample) if sample.is_file() else []
    return tuple(name for name in names if name not in (submission.id_columns or names[:1]))


def _find_train(task: Task, public: Path, wanted: tuple[str, ...]) -> tuple[Path, Path | None, tuple[str, ...]]:
    """Return the training table, the test table, and the targets among the former's columns."""
    sample = (public / (task.submission.sample or "")).resolve()
    tables = {path: columns_of(path) for path in find_tables(public) if path.resolve() != sample}
    tables = {path: names for path, names in tables.items() if names and "sample" not in stem(path)}
    trains = [path for path in tables if "test" not in stem(path)]
    if not trains:
        raise NotApplicable(f"{task.id} ({task.category}) has no training table among its public files.")
    for path in sorted(trains, key=lambda path: "train" not in stem(path)):
        if wanted and set(wanted) <= set(tables[path]):
            test = _find_test(path, tables)
            if test is None or not set(wanted) <= set(tables[test]):
                return path, test, wanted
    for path in trains:
        test = _find_test(path, tables)
        extra = [name for name in tables[path] if name not in (tables[test] if test else task.submission.id_columns)]
        if target := _target_of_classes(path, extra, wanted):
            return path, test, (target,)
        if "train" in stem(path) and len(extra) == 1:
            return path, test, (extra[0],)
    raise NotApplicable(
        f"No table among the public files of {task.id} ({task.category}) has the column to predict"
        + (f" ({', '.join(wanted[:5])})." if wanted else ".")
    )


def _images_with_labels(
    task: Task, public: Path, wanted: tuple[str, ...], answers: Frame
) -> tuple[Frame, list[Place]] | None:
    """Return a table of ids and labels of training images labeled by their paths, and the images' locations."""
    rows = [name for name in answers.columns if name not in wanted]
    target = wanted[0] if len(wanted) == 1 else "label"
    if not rows or not wanted or (len(wanted) == 1 and target not in answers):
        return None
    classes = {columns.class_name(value) for value in (wanted if len(wanted) > 1 else answers[target].unique())}
    return labeled(public, classes, rows[0], target, task.describe().lower())


def _find_test(train: Path, tables: dict[Path, list[str]]) -> Path | None:
    twin = train.with_name(train.name.replace("train", "test").replace("Train", "Test"))
    if twin != train and twin in tables:
        return twin
    others = [path for path in tables if "test" in stem(path) and set(tables[path]) & set(tables[train])]
    return max(others, key=lambda path: len(set(tables[path]) & set(tables[train])), default=None)


def _target_of_classes(path: Path, extra: list[str], wanted: tuple[str, ...]) -> str | None:
    """Return the column whose values name the submission's columns (one probability per class)."""
    if len(wanted) < 2 or not extra:
        return None
    table = read_table(path)
    classes = {columns.class_name(name) for name in wanted}
    for name in extra:
        values = {columns.class_name(value) for value in table[name].dropna().unique()}
        if values and len(values & classes) >= 0.9 * max(len(values), len(classes)):
            return name
    return None


def _answers(task: Task, prepared: Path) -> Frame:
    path = prepared / "private" / task.answers
    if not path.is_file():
        raise NotApplicable(f"The answers of {task.id} are not a table, so the test rows have no labels.")
    try:
        return read_table(path)
    except DataError as error:
        raise NotApplicable(f"The answers of {task.id} are not a readable table ({error.message})") from error


def _ids(task: Task, train: Frame, test: Frame) -> tuple[str, ...]:
    """Return the id columns: the declared ones (except prose, which is a feature), else those named like ids."""
    declared = [name for name in task.submission.id_columns if name in train.columns]
    names = [name for name in declared if not columns.is_free_text(train[name])]
    for name in train.columns:
        named = name.lower() in ("id", "index") or name.lower().endswith("_id") or name.endswith("Id")
        if name not in names and named and name in test.columns and train[name].is_unique:
            names.append(name)
    return tuple(name for name in train.columns if name in names)


def _labels(task: Task, test: Frame, answers: Frame, truth: Frame, ids: tuple[str, ...]) -> Frame:
    """Return the true targets of the test rows, in row order, from those of the answers."""
    keys = [name for name in ids if name in test.columns and name in answers.columns]
    if keys:
        ours, theirs = _keys(test, keys), _keys(answers, keys)
        if theirs.is_unique and set(ours) <= set(theirs):
            places = theirs.reset_index(drop=True).reset_index().set_index(0)["index"]
            return truth.iloc[places.loc[list(ours)].to_numpy()].reset_index(drop=True)
    if len(answers) != len(test):
        raise NotApplicable(f"The answers of {task.id} do not match its test table, so rows have no labels.")
    return truth.reset_index(drop=True)


def _keys(frame: Frame, names: list[str]) -> Series:
    texts = frame[names[0]].map(columns.class_name)
    for name in names[1:]:
        texts = texts + "\0" + frame[name].map(columns.class_name)
    return texts.rename(0)


def _decoded(task: Task, answers: Frame, targets: tuple[str, ...], wanted: tuple[str, ...]) -> Frame:
    """Return the targets in the form of the training table: unchanged, or the class with the highest value."""
    if set(targets) <= set(answers.columns):
        return answers[list(targets)]
    import pandas as pd

    if len(targets) == 1 and len(wanted) > 1 and set(wanted) <= set(answers.columns):
        values = answers[list(wanted)].to_numpy(dtype=float)
        return pd.DataFrame({targets[0]: np.asarray(wanted, dtype=object)[values.argmax(axis=1)]})
    if len(targets) == 1 and len(wanted) == 1 and wanted[0] in answers.columns:
        return answers[[wanted[0]]].set_axis([targets[0]], axis=1)
    raise NotApplicable(f"The answers of {task.id} have no column {targets[0]!r}, so test rows have no labels.")
