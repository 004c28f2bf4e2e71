"""The variants `+debug-N`: a task on a sample of its rows, whose scores stand apart."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import mleredux
import pytest
from mleredux._core.data import DataStore
from mleredux._core.plugins import current
from mleredux._core.stages.prepare import prepare
from mleredux.errors import DataError, MlereduxError
from mleredux.models import Competition, Metric, Submission, Thresholds
from mleredux.plugin.experiment import Plan, is_sample, resolved, sample_name, sampled
from mleredux_agent_repo.samples import sample_of

ROWS = 300


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def _write(path: Path, header: str, lines: list[str]) -> None:
    path.write_text("\n".join([header, *lines]) + "\n")


def _class(n: int) -> str:
    return "rare" if n == 7 else "often" if n % 10 else "seldom"


def _prepare(raw: Path, public: Path, private: Path) -> None:
    """Training rows in three tables, one without keys, an image for each row, other data, and test rows."""
    _write(public / "train.csv", "id,x,y", [f"a{n},{n},{_class(n)}" for n in range(ROWS)])
    _write(public / "train_more.csv", "x,y", [f"{n},{_class(n)}" for n in range(ROWS)])
    _write(public / "train_notes.tsv", "id\tnote", [f"a{n}\tof {n}" for n in range(0, ROWS, 2)])
    _write(public / "test.csv", "id,x", [f"b{n},{n}" for n in range(ROWS)])
    _write(public / "sample_submission.csv", "id,y", [f"b{n},often" for n in range(ROWS)])
    _write(public / "shops.csv", "shop,city", [f"{n},Ulm" for n in range(ROWS)])
    (public / "images").mkdir()
    for n in range(ROWS):
        (public / "images" / f"a{n}.png").write_bytes(b"image")
        (public / "images" / f"b{n}.png").write_bytes(b"image")
    _write(private / "answers.csv", "id,y", [f"b{n},{_class(n)}" for n in range(ROWS)])
    _write(private / "leaderboard.csv", "score", ["1", "0.5"])


@pytest.fixture
def task(tmp_path: Path) -> Competition:
    (tmp_path / "description.md").write_text("Predict y.\n")
    return Competition(
        id="shops",
        title="Shops",
        description=tmp_path / "description.md",
        prepare=_prepare,
        fetch=lambda raw: (raw / "raw.txt").write_text("raw") and None,
        submission=Submission(id_columns=("id",)),
        metric=Metric(grader="accuracy"),
        direction="maximize",
        thresholds=Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.6),
        sets=("starter",),
    )


def test_rows_are_dropped_everywhere_or_nowhere_and_the_same_each_time(task: Competition, tmp_path: Path) -> None:
    one, two = (prepare(sample_of(task, 20), current(), DataStore(tmp_path / name)) for name in ("one", "two"))
    assert one.digest == two.digest
    kept = {row[0] for row in rows_of(one.public / "test.csv")}
    assert len(kept) == 20
    assert kept == {row[0] for row in rows_of(one.private / "answers.csv")}
    assert kept == {row[0] for row in rows_of(one.public / "sample_submission.csv")}
    train = {row[0] for row in rows_of(one.public / "train.csv")}
    assert len(train) == 20
    notes = [line.split("\t")[0] for line in (one.public / "train_notes.tsv").read_text().splitlines()[1:]]
    assert set(notes) == {key for key in train if int(key[1:]) % 2 == 0}
    assert {path.stem for path in (one.public / "images").iterdir()} == kept | train
    assert len(rows_of(one.public / "shops.csv")) == ROWS
    other = prepare(sample_of(task, 21), current(), DataStore(tmp_path / "one"))
    assert {row[0] for row in rows_of(other.public / "test.csv")} != kept


def test_classes_keep_their_proportions_and_none_is_lost(task: Competition, tmp_path: Path) -> None:
    sample = prepare(sample_of(task, 40), current(), DataStore(tmp_path))
    for path in (sample.public / "train.csv", sample.public / "train_more.csv", sample.private / "answers.csv"):
        assert Counter(row[-1] for row in rows_of(path)) == {"often": 35, "seldom": 4, "rare": 1}, path.name


def test_a_sample_earns_no_medal_and_says_what_it_is(task: Competition, tmp_path: Path) -> None:
    sample = sample_of(task, 20)
    prepared = prepare(sample, current(), DataStore(tmp_path))
    assert sample.id == "shops+debug-20" and not sample.sets and sample.thresholds is None
    assert "debug sample of 20 rows" in (sample.note or "")
    assert not (prepared.private / "leaderboard.csv").exists()


def test_data_that_is_not_in_tables_is_refused_in_a_sentence(task: Competition, tmp_path: Path) -> None:
    def images(raw: Path, public: Path, private: Path) -> None:
        _prepare(raw, public, private)
        for name in ("train.csv", "train_more.csv", "train_notes.tsv"):
            (public / name).unlink()

    with pytest.raises(DataError, match=r"^The data of shops can't be sampled: it has no table \(CSV or TSV\)"):
        prepare(sample_of(task.model_copy(update={"prepare": images}), 20), current(), DataStore(tmp_path))


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("wine", "wine+debug-50"),
        ("titanic+fixed", "titanic+fixed-debug-50"),
        ("wine+planted-7", "wine+planted-7-debug-50"),
        ("cv@wine", "cv@wine+debug-50"),
        ("cv+planted-1@wine", "cv+planted-1@wine+debug-50"),
    ],
)
def test_names_of_samples_are_read_as_they_are_written(task: str, name: str) -> None:
    assert sample_name(task, 50) == name and is_sample(name) and not is_sample(task)
    if "@" not in task:
        assert sampled(name) == (task, 50)


@pytest.mark.parametrize("name", ["wine+debug-0", "wine-debug-5", "wine+debug-", "wine+debug-05", "wine+debugging"])
def test_other_names_are_no_samples(name: str) -> None:
    assert not is_sample(name)


def test_a_plan_does_not_mix_samples_with_whole_tasks() -> None:
    def tasks(*names: str) -> list[str]:
        design = {"name": "mixed", "tasks": list(names)}
        plan = Plan.model_validate({"experiment": design, "arms": {"a": {"agent": "dummy"}}})
        return list(resolved(plan.request, current()).tasks)

    assert tasks("wine+debug-50", "digits+debug-9") == ["wine+debug-50", "digits+debug-9"]
    with pytest.raises(MlereduxError, match=r"An experiment can't mix .*: wine\+debug-50 and digits\."):
        tasks("digits", "wine+debug-50")


def test_a_run_on_a_sample_is_graded_on_its_rows(mleredux_home: Path) -> None:
    run = mleredux.run("diabetes+debug-30", "dummy", runs_dir=mleredux_home)
    report = run.report
    assert report is not None and report.valid_submission and report.competition_id == "diabetes+debug-30"
    assert report.gold_threshold is None and report.percentile is None and not report.any_medal
    assert "is not comparable with scores on diabetes" in (report.note or "")


def _by_place(public: Path, private: Path) -> None:
    for path in (public / "test.csv", public / "sample_submission.csv", private / "answers.csv"):
        path.write_text(path.read_text().replace("id,", "number,").replace("\nb", "\n"))


def _other_keys(public: Path, private: Path) -> None:
    _write(public / "test.csv", "shop,x", [f"{n},{n}" for n in range(ROWS)])


def _more_asked_than_scored(public: Path, private: Path) -> None:
    _write(private / "answers.csv", "id,y", [f"b{n},{_class(n)}" for n in range(0, ROWS, 3)])


@pytest.mark.parametrize(
    ("change", "ids", "tests"),
    [(_by_place, (), 20), (_other_keys, ("id",), ROWS), (_more_asked_than_scored, ("id",), 20)],
)
def test_asked_and_scored_rows_stay_few_and_the_same(
    change: Callable[[Path, Path], None], ids: tuple[str, ...], tests: int, task: Competition, tmp_path: Path
) -> None:
    def changed(raw: Path, public: Path, private: Path) -> None:
        _prepare(raw, public, private)
        change(public, private)

    submission = Submission(id_columns=ids, target_columns=("y",), ids_fixed=False)
    changed_task = task.model_copy(update={"prepare": changed, "submission": submission})
    sample = prepare(sample_of(changed_task, 20), current(), DataStore(tmp_path))
    asked = [row[0] for row in rows_of(sample.public / "sample_submission.csv")]
    assert len(asked) == 20
    assert asked == [row[0] for row in rows_of(sample.private / "answers.csv")]
    assert len(rows_of(sample.public / "test.csv")) == tests
