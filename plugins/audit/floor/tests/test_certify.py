"""Certificates: measured from the data, bound to its digest, refused if anything differs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.errors import MlereduxError, NotApplicable
from mleredux.plugin.command import DataStore, current
from mleredux.plugin.host import Prepared, prepare
from mleredux_audit_floor import certificate, documents
from mleredux_audit_floor.certificate import CALIBRATED, certify, contradictions, described

TASK = "synthetic-micro-easy-public-5"
FIELDS = {
    "truth", "floor_and_ceiling", "data_blind", "wrong_submissions", "solutions", "discrimination",
    "real_competitions", "cost", "difficulty", "leaks", "secret", "disjoint",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DataStore:
    return DataStore(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def made(store: DataStore) -> dict[str, Any]:
    return certify(current().task(TASK), current(), store)


def test_twelve_fields_are_measured(made: dict[str, Any]) -> None:
    fields = made["fields"]
    assert set(fields) == FIELDS and made["sound"] is True, {name: field["ok"] for name, field in fields.items()}
    assert fields["wrong_submissions"] == {"ok": True, "refused": 10, "accepted": []}
    assert fields["floor_and_ceiling"]["null_agents"] >= 10 and len(fields["data_blind"]["agents"]) == 5
    assert fields["real_competitions"]["ok"] is None and fields["discrimination"]["language_models"] == 0
    assert fields["difficulty"]["level"] == "easy" and len(fields["solutions"]["scores"]) == 3
    assert (
        fields["disjoint"]["part"] == "training" and min(fields["disjoint"]["distance_to_other_seeds"].values()) > 0.9
    )
    assert list(CALIBRATED.values()) == sorted(CALIBRATED.values(), reverse=True)
    json.dumps(made, allow_nan=False)


def test_a_certificate_that_differs_is_refused(
    made: dict[str, Any], store: DataStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert contradictions(made, current(), store) == []
    near = "synthetic-micro-easy-public-6"
    forged = {**made, "fields": {**made["fields"], "leaks": {"ok": False}}}
    for other, sentence in (
        ({**made, "digest": "sha256:" + "0" * 64}, "The data of synthetic-micro-easy-public-5 differs"),
        ({**made, "task": near, "description": described(current().task(near))}, f"The data of {near} differs"),
        ({**made, "version": "0"}, "It certifies version 0"),
        ({**made, "schema": "x"}, "unsupported version"),
        (forged, "The measured verdict differs: leaks"),
    ):
        (told,) = contradictions(other, current(), store)
        assert sentence in told
    monkeypatch.setattr(type(current().task(TASK)), "describe", lambda self, **how: "Reworded.")
    assert contradictions(made, current(), store) == [
        f"It is stale: the description of {TASK} has changed. Certify the task again."
    ]
    monkeypatch.undo()
    (told,) = contradictions(made, current(), store, bundle=tmp_path)
    assert "The files of synthetic-micro-easy-public-5 differ" in told


def test_the_command_writes_and_checks(made: dict[str, Any], store: DataStore, tmp_path: Path) -> None:
    words = ["certify", TASK, "--output", str(tmp_path), "--data-dir", str(store.home(current().task(TASK)).parent)]
    ended = CliRunner().invoke(root, words, catch_exceptions=False)
    path = tmp_path / f"{TASK}.json"
    assert ended.exit_code == 0 and json.loads(path.read_text())["digest"] == made["digest"]
    path.write_text(path.read_text().replace(made["digest"], "sha256:" + "1" * 64))
    ended = CliRunner().invoke(root, ["certify", "--check", str(path), *words[-2:]], catch_exceptions=False)
    assert ended.exit_code == 3 and "differs from the certified data" in ended.output


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", 1),
        ('{"schema": "mle', 1),
        ("[" * 100_000, 1),
        ("\\xff", 1),
        ("[]", 3),
        ('{"task": 5}', 3),
        ('{"schema": "mleredux-certificate/1", "task": "../x", "fields": {}}', 1),
        ('{"schema": "mleredux-certificate/1", "task": "synthetic-micro-1", "version": NaN, "fields": {"x": 1}}', 3),
        (None, 1),
    ],
)
def test_a_damaged_certificate_is_refused_in_a_sentence(content: str | None, code: int, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    if content is not None:
        path.write_text(content)
    ended = CliRunner().invoke(root, ["certify", "--check", str(tmp_path), "--data-dir", str(tmp_path)])
    assert isinstance(ended.exception, SystemExit | MlereduxError) and ended.exit_code == code, ended.exception


def test_a_leak_is_found(tmp_path: Path) -> None:
    """A column of the answers in the test table is found by a copy of it."""
    task = current().task("synthetic-micro-public-11")
    prepare = task.prepare
    assert prepare is not None

    def leaking(raw: Path, public: Path, private: Path) -> None:
        prepare(raw, public, private)
        answers = [line.split(",")[1] for line in (private / "answers.csv").read_text().splitlines()]
        lines = (public / "test.csv").read_text().splitlines()
        (public / "test.csv").write_text(
            "".join(f"{a},{b}\n" for a, b in zip(lines, ["x99", *answers[1:]], strict=True))
        )
        train = (public / "train.csv").read_text().splitlines()
        rows = [line.rsplit(",", 1) for line in train]
        (public / "train.csv").write_text(
            "".join(f"{first},{'x99' if not place else 0},{last}\n" for place, (first, last) in enumerate(rows))
        )

    spoiled = task.model_copy(update={"prepare": leaking})
    found = certify(spoiled, current(), DataStore(tmp_path))
    assert found["sound"] is False and found["fields"]["leaks"]["ok"] is False
    assert found["fields"]["leaks"]["columns_that_reach_the_top"] == ["x99 of test.csv"]


def drawn(seed: int, columns: int) -> list[list[str]]:
    """Rows of columns with few different values."""
    rng = random.Random(seed)
    return [
        [f"{rng.gauss(13, 1):.2f}" if place % 2 else f"{rng.randrange(300, 1700)}.0" for place in range(columns)]
        for _ in range(1000)
    ]


@pytest.mark.parametrize("columns", [4, 12, 30])
def test_chance_is_no_copy(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with the same values are disjoint; those that repeat some rows, or some columns of all rows, are not."""
    first, second = drawn(1, columns), drawn(2, columns)
    half = columns // 2
    tables = {
        TASK: first,
        "other": second,
        "some rows": [*first[:200], *second[200:]],
        "some columns": [[*old[:half], *new[half:]] for old, new in zip(first, second, strict=True)],
        "other order": [row[::-1] for row in reversed(first)],
    }

    def written(task: Any, *_: Any) -> Prepared:
        folder = tmp_path / task.id
        for part, rows in (("train", tables[task.id]), ("test", drawn(3, columns))):
            names = ["id", *(f"x{place:02}" for place in range(columns))]
            lines = [",".join(names), *(",".join([str(number), *row]) for number, row in enumerate(rows))]
            (folder / "public").mkdir(parents=True, exist_ok=True)
            (folder / "private").mkdir(exist_ok=True)
            (folder / "public" / f"{part}.csv").write_text("\n".join(lines) + "\n")
        return Prepared(folder / "public", folder / "private", folder / "schema", "")

    task, names = current().task(TASK), [name for name in tables if name != TASK]
    copies = {name: task.model_copy(update={"id": name}) for name in tables}
    monkeypatch.setattr(certificate, "prepare", written)
    monkeypatch.setattr(certificate, "_others", lambda name: names)
    catalogue: Any = SimpleNamespace(task=copies.__getitem__)
    disjoint = certificate._generated(task, written(task), catalogue, DataStore(tmp_path))["disjoint"]
    distances = disjoint["distance_to_other_seeds"]
    assert distances["other"] > 0.95 and distances["other order"] < 0.7
    assert max(distances["some rows"], distances["some columns"]) < certificate.DISTANCE, distances


def test_planted_tables_of_a_competition_are_disjoint(store: DataStore) -> None:
    task = current().task("missing+planted-public-1@wine")
    fields = certificate._generated(task, prepare(task, current(), store), current(), store)
    assert fields["disjoint"]["ok"] is True, fields["disjoint"]
    assert len(fields["disjoint"]["distance_to_other_seeds"]) == 4


def test_no_other_seed_is_no_verdict(store: DataStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "_others", lambda name: [])
    task = current().task(TASK)
    fields = certificate._generated(task, prepare(task, current(), store), current(), store)
    assert fields["disjoint"]["ok"] is None


@pytest.mark.parametrize("name", ["wine", "eda@wine"])
def test_other_tasks_are_refused(name: str, store: DataStore) -> None:
    with pytest.raises(NotApplicable, match="not generated from a seed"):
        certify(current().task(name), current(), store)


def test_other_seeds_are_within_the_range() -> None:
    names = certificate._others(f"synthetic-micro-public-{2**31 - 1}")
    assert names == [
        "synthetic-micro-public-0", "synthetic-micro-public-1073741823", f"synthetic-micro-public-{2**31 - 2}",
        f"synthetic-micro-{2**31 - 1}",
    ]  # fmt: skip
    assert all(current().task(name).id == name for name in names)
    assert certificate._others("wine+planted-7")[-1] == "wine+planted-public-7"
    assert certificate._others("eda@synthetic-micro-public-7")[-1] == "eda@synthetic-micro-7"
    assert certificate._others("eda+planted-7@wine")[-1] == "eda+planted-public-7@wine"


@pytest.mark.parametrize(
    "name", ["leakage@synthetic-micro-public-3", "eda@synthetic-micro-hard-public-4", "shift@synthetic-micro-public-3"]
)
def test_techniques_are_certified_by_their_documents(name: str, store: DataStore) -> None:
    found = certify(current().task(name), current(), store)
    fields = found["fields"]
    assert set(fields) == FIELDS and found["sound"], {field: one for field, one in fields.items() if one["ok"] is False}
    assert (
        fields["floor_and_ceiling"]["oracles"] == {"solution": 1} and fields["floor_and_ceiling"]["null_agents"] == 10
    )
    assert fields["wrong_submissions"] == {"ok": True, "refused": 10, "accepted": []}
    accepted, independent = fields["solutions"]["scores"], ["the solution", "an analysis of the public files"]
    assert fields["solutions"]["independent"] == independent
    assert fields["solutions"]["ok"] is True
    assert {*independent, *accepted} == {*accepted, *fields["solutions"]["not_accepted"]}
    assert any(name.startswith("another choice") for name in accepted) and len(fields["data_blind"]["agents"]) == 5
    assert contradictions(found, current(), store) == []


def leaves(value: Any, place: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """The values of a document by place."""
    if not isinstance(value, dict | list):
        return {place: value}
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    return {key: leaf for name, part in parts for key, leaf in leaves(part, (*place, name)).items()}


@pytest.mark.parametrize("name", ["leakage@synthetic-micro-public-3", "shift@synthetic-micro-public-3"])
def test_other_answers_differ_in_one_choice(name: str, store: DataStore) -> None:
    task = current().task(name)
    prepared = prepare(task, current(), store)
    assert task.solution is not None and task.submission.document is not None
    best = json.loads(task.solution(task, prepared.private))
    columns = json.loads((prepared.public / "question.json").read_bytes())["features"]
    drawn = [documents._random(task.submission.document, columns, seed) for seed in range(10)]
    others = [other for document in drawn for other in documents._other_choices(best, document, columns)]
    for other in others:
        before, after = leaves(best), leaves(other)
        ((place, choice),) = set(after.items()) - set(before.items())
        assert before.keys() == after.keys() and {before[place], choice}.isdisjoint(columns)
    assert len({json.dumps(other) for other in others}) > 1


@pytest.mark.parametrize(("agent", "ok"), [("dummy", None), ("analyst", True)])
def test_solutions_need_an_independent_analysis(
    agent: str, ok: bool | None, store: DataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variants of the one solution are not enough, and an agent that analyzes nothing is not accepted."""
    monkeypatch.setattr(documents, "ANALYST", agent)
    monkeypatch.setattr(documents, "OPTIONS", documents.OPTIONS if ok else {})
    monkeypatch.setattr(documents, "_other_choices", lambda *_: ())
    solutions = certify(current().task("features@synthetic-micro-public-3"), current(), store)["fields"]["solutions"]
    assert solutions["ok"] is ok and len(solutions["scores"]) == (3 if ok else 2), solutions
    assert len(solutions["independent"]) == (2 if ok else 1)


def test_techniques_that_cannot_decide_or_that_leak_are_not_sound(tmp_path: Path) -> None:
    """The best score of `cv` without a structure is a half; a public copy of the truth is a leak."""
    fields = certify(current().task("cv@synthetic-micro-public-3"), current(), DataStore(tmp_path / "cv"))["fields"]
    assert fields["floor_and_ceiling"]["ok"] is False and fields["floor_and_ceiling"]["oracles"] == {"solution": 0.5}
    task = current().task("eda@synthetic-micro-public-3")
    prepare = task.prepare
    assert prepare is not None

    def leaking(raw: Path, public: Path, private: Path) -> None:
        prepare(raw, public, private)
        (public / "notes.txt").write_bytes(b"Notes:\n" + (private / "truth.json").read_bytes())

    found = certify(task.model_copy(update={"prepare": leaking}), current(), DataStore(tmp_path / "eda"))
    assert found["sound"] is False and found["fields"]["leaks"]["files_that_contain_answers"] == ["notes.txt"]
