"""Results that are verified by executing the code again, and attacks on that."""

from __future__ import annotations

import base64
import csv
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.prepare import prepare
from mleredux.models.verdict import verdict_on
from mleredux.plugin.artifact import Evidence, Verification
from mleredux.plugin.task import Metric, Submission, Task
from mleredux_artifact_notes.permutation import NotPermutable, permutation_of
from mleredux_grading import verify_run
from mleredux_support.plans import plan_of

LETTERS = Path(__file__).parent / "letters_plugin.py"
READ = """\
import csv, os, sys
data, out = sys.argv[1], sys.argv[2]
def read(name):
    return list(csv.reader(open(os.path.join(data, name))))[1:]
def write(rows):
    with open(out, "w", newline="") as file:
        csv.writer(file).writerows([["id", "letter"], *rows])
"""
NEAREST = (
    READ
    + """\
def nearest(row):
    return min(read("train.csv"), key=lambda known: abs(float(row[1]) - float(known[1])))[-1]
"""
)
HONEST = NEAREST + "write([row[0], nearest(row)] for row in read('test.csv'))\n"
NOISY = HONEST.replace("nearest(row)] for", "nearest(row) if random.random() > 0.03 else 'a'] for")
PREDICT = (
    READ
    + """\
rule = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model.bin"), "rb").read()
write([row[0], "b" if float(row[1]) > float(rule) else "a"] for row in read("test.csv"))
"""
)
# The rest has the answers: {answers} stands for id → letter, {order} for the letters in the order of the test rows.
ATTACKS = {
    "by id": READ + "answers = {answers}\nwrite([row[0], answers[row[0]]] for row in read('test.csv'))\n",
    "by order": READ + "write([row[0], letter] for row, letter in zip(read('test.csv'), {order}))\n",
    "by sorted id": READ + "answers = {answers}\nwrite(sorted(answers.items()))\n",
    "hidden binary file": READ
    + "import pickle\nplace = os.path.join(os.path.dirname(os.path.abspath(__file__)), '.cache.bin')\n"
    + "answers = pickle.load(open(place, 'rb'))\nwrite([row[0], answers[row[0]]] for row in read('test.csv'))\n",
    "stored submission": READ
    + "place = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stored.csv')\n"
    + "write(list(csv.reader(open(place)))[1:])\n",
    "detects the repetition": READ
    + "if open(os.path.join(data, 'test.csv')).read(60) != {start!r}:\n    raise SystemExit('executed again')\n"
    + "answers = {answers}\nwrite([row[0], answers[row[0]]] for row in read('test.csv'))\n",
    "varies wildly": NEAREST.replace("csv, os", "csv, os, random")
    + "answers = {answers}\nluck = 0.7 * random.random()\n"
    + "write([row[0], answers[row[0]] if {start!r} == open(os.path.join(data, 'test.csv')).read(60)"
    + " else nearest(row) if random.random() < luck else 'z'] for row in read('test.csv'))\n",
}
CRASHES = ("hidden binary file", "stored submission", "detects the repetition")
"""Attacks that fail the second time: honest code may fail for other reasons, so they are not condemned."""
WRITER = """\
import base64, os, subprocess, sys
code = os.environ["MLEREDUX_OUTPUT_DIR"] + "/code/"
for name, content in {files!r}.items():
    open(code + name, "wb").write(base64.b64decode(content))
given = [os.environ["MLEREDUX_DATA_DIR"], os.environ["MLEREDUX_SUBMISSION"]]
subprocess.run([sys.executable, {entry!r}, *given], cwd=code, check=True)
"""


@pytest.fixture
def run_code(tmp_path: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that runs an agent which writes files of code and runs one of them on `letters`."""

    def run(
        code: str | dict[str, str | bytes],
        entry: str = "solution.py",
        *,
        verify: bool = False,
        verify_command: tuple[str, ...] = (),
    ) -> Any:
        files = code if isinstance(code, dict) else {entry: code}
        encoded = {
            name: base64.b64encode(text.encode() if isinstance(text, str) else text).decode()
            for name, text in files.items()
        }
        agent = {"id": "writer", "title": "w", "command": ("python", "-c", WRITER.format(files=encoded, entry=entry))}
        plugin = tmp_path / "writer_plugin.py"
        plugin.write_text(
            "from mleredux import Agent, hookimpl\n\n@hookimpl\ndef mleredux_register_agents():\n"
            f"    return [Agent(**{ {**agent, 'verify': verify_command}!r})]\n"
        )
        catalogue = Catalogue(load=(str(LETTERS), str(plugin)))
        set_current(catalogue)
        planned = plan_of(catalogue, "letters", "writer", sandbox="process", verify=verify)
        made = store.create(planned, tmp_path / "data")
        return Pipeline(store, catalogue, DataStore(tmp_path / "data")).execute([made])[0]

    yield run
    set_current(None)


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    """What a cheating agent got hold of."""
    catalogue = Catalogue(load=(str(LETTERS),))
    prepared = prepare(catalogue.task("letters"), catalogue, DataStore(tmp_path / "data"))
    answers = {row["id"]: row["letter"] for row in csv.DictReader((prepared.private / "answers.csv").open())}
    test = (prepared.public / "test.csv").read_text()
    order = [answers[line.partition(",")[0]] for line in test.splitlines()[1:]]
    return {"answers": answers, "order": order, "start": test[:60]}


def test_honest_code_is_verified_and_leaves_no_traces(run_code: Any, store: Any) -> None:
    run = run_code(HONEST, verify=True)
    verdict = run.report.verdict
    assert verdict.status == "verified", verdict
    check = verdict.verification
    assert (check.entry, check.score, check.scores) == ("solution.py", run.report.score, (run.report.score,))
    assert run.report.gold_medal and sorted(path.name for path in (run.logs_dir / "verify").iterdir()) == [
        "1.log",
        "2.log",
        "3.log",
    ]
    assert not [path for path in run.path.iterdir() if path.name in (".verify", ".scratch") or "permuted" in path.name]
    assert [row["verdict"] for row in store.rows()] == ["verified"]


def test_code_that_varies_is_verified_within_the_tolerance(run_code: Any) -> None:
    random_code = NOISY.replace("csv, os", "csv, os, random")
    verdict = run_code(random_code, verify=True).report.verdict
    # In one of five runs, too little skill is left on so few rows, or the submission has no error but its repetition
    # has: then it is not checked.
    sentences = ("much worse than before", "it may know answers without learning", "numbers are barely changed")
    unknown = verdict.status == "not checked" and any(part in verdict.verification.why for part in sentences)
    assert verdict.trusted and (verdict.status == "verified" or unknown), verdict


def test_an_inference_entry_point_gets_what_was_trained(run_code: Any, store: Any) -> None:
    train = READ + "open('../model.bin', 'w').write('5')\n" + "import runpy; runpy.run_path('predict.py')\n"
    run = run_code({"train.py": train, "predict.py": PREDICT}, "train.py", verify=True)
    verdict = run.report.verdict
    assert (verdict.status, verdict.verification.entry) == ("verified", "predict.py"), verdict
    command = ("sh", "-c", 'python infer.py "$MLEREDUX_DATA_DIR" "$MLEREDUX_SUBMISSION"')
    files = {"train.py": train.replace("predict.py", "infer.py"), "infer.py": PREDICT}
    declared = run_code(files, "train.py", verify=True, verify_command=command).report.verdict
    assert declared.status == "verified" and declared.verification.entry == " ".join(command), declared


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.attack
def test_answers_that_were_written_down_fail(run_code: Any, told: dict[str, Any], attack: str) -> None:
    import pickle

    stored = "id,letter\n" + "".join(f"{key},{letter}\n" for key, letter in told["answers"].items())
    code = ATTACKS[attack].format(**told)
    if attack == "by id":
        code = f"import base64\nexec(base64.b64decode({base64.b64encode(code.encode())!r}))\n"
    files = {"solution.py": code, ".cache.bin": pickle.dumps(told["answers"]), "stored.csv": stored}
    report = run_code(files, verify=True).report
    assert report.score == 1.0
    assert report.verdict.withheld["gold_medal"]
    check = report.verdict.verification
    assert check.status == ("not attempted" if attack in CRASHES else "not reproducible"), report.verdict
    assert attack not in CRASHES or "did not behave as before" in check.why
    assert not report.any_medal and not report.verdict.trusted


def test_what_is_not_attempted_says_why_and_a_finished_run_can_be_verified(run_code: Any, store: Any) -> None:
    run = run_code({"a.py": HONEST, "b.py": ""}, "a.py", verify=True)
    verdict = run.report.verdict
    assert verdict.status == "not checked" and "Several files" in verdict.verification.why
    (run.output_dir / "code" / "b.py").unlink()
    from mleredux.plugin.command import current

    assert verify_run(run, store, current()).verdict.status == "verified"
    assert store.get(run.id).report.verdict.status == "verified"
    with pytest.raises(Exception, match="has no report to verify"):
        (run.path / "report.json").unlink()
        verify_run(run, store, current())


def task_of(**form: Any) -> Task:
    fields = {"id_columns": ("id",), "target_columns": ("y",), **form}
    return Task(
        id="t",
        title="t",
        description=Path("d"),
        submission=Submission(**fields),
        metric=Metric(grader="x"),
        direction="minimize",
    )


@pytest.fixture
def public(tmp_path: Path) -> Path:
    folder = tmp_path / "public"
    (folder / "test_images").mkdir(parents=True)
    (folder / "train_images").mkdir()
    ids = [f"k{number}" for number in range(20)]
    (folder / "sample_submission.csv").write_text("id,y\n" + "".join(f"{key},0\n" for key in ids))
    (folder / "train.csv").write_text("id,y\n" + "".join(f"{key},1\n" for key in ids[:5]))
    for key in ids:
        (folder / "test_images" / f"{key}.png").write_text(f"picture of {key}")
        (folder / "train_images" / f"{key}.png").write_text("other")
    return folder


def test_ids_are_exchanged_in_tables_and_names_of_files_and_back(public: Path, tmp_path: Path) -> None:
    (public / "test.csv").write_text("x,id\n" + "".join(f"{n // 2},k{n // 2}\n" for n in range(40)))
    found = permutation_of(task_of(), public, random.Random(1))
    target = tmp_path / "target"
    target.mkdir()
    found.write(public, target)
    for (old,), (new,) in found.new.items():
        assert (target / "test_images" / f"{new}.png").read_text() == f"picture of {old}"
    rows = list(csv.DictReader((target / "test.csv").open()))
    assert [row["id"] for row in rows] == [found.new[f"k{row['x']}",][0] for row in rows]
    assert [row["x"] for row in rows] != [str(n // 2) for n in range(40)]
    assert [row["id"] for row in rows] == [f"k{n // 2}" for n in range(40)], "ids stay in their places"
    assert (target / "train.csv").read_bytes() == (public / "train.csv").read_bytes()
    made = "".join(f"{new},{old[1:]}\n" for (old,), (new,) in found.new.items())
    (tmp_path / "made.csv").write_text(f"id,y\n{made}")
    found.restore(tmp_path / "made.csv", tmp_path / "restored.csv")
    assert (tmp_path / "restored.csv").read_text() == "id,y\n" + "".join(f"k{n},{n}\n" for n in range(20))


def permuted(public: Path, tmp_path: Path, form: dict[str, Any]) -> tuple[Any, Path]:
    """A permutation of a folder without pictures, and what it wrote."""
    shutil.rmtree(public / "test_images")
    found = permutation_of(task_of(**form), public, random.Random(1))
    target = tmp_path / "target"
    target.mkdir()
    found.write(public, target)
    return found, target


def test_ids_of_several_columns_are_exchanged_among_rows_that_share_what_means_something(public, tmp_path) -> None:
    keys = [(f"shop{n % 2}", f"q{n}") for n in range(40)]
    (public / "sample_submission.csv").write_text("shop,item,y\n" + "".join(f"{a},{b},0\n" for a, b in keys))
    (public / "train.csv").write_text("shop,item,y\n" + "".join(f"shop{n % 2},t{n},1\n" for n in range(9)))
    (public / "test.csv").write_text("item,x,shop\n" + "".join(f"{b},{b},{a}\n" for a, b in keys))
    found, target = permuted(public, tmp_path, {"id_columns": ("shop", "item")})
    rows = list(csv.DictReader((target / "test.csv").open()))
    pairs = {("shop" + str(int(row["x"][1:]) % 2), row["x"]): (row["shop"], row["item"]) for row in rows}
    assert pairs == found.new and set(pairs) == set(pairs.values()) == set(keys)
    assert all(old[0] == new[0] for old, new in pairs.items()), "a shop of the training data stays"
    assert sum(old == new for old, new in pairs.items()) < 10 and [row["x"] for row in rows] != [b for _, b in keys]
    made = "".join(f"{new[0]},{new[1]},{old[1]}\n" for old, new in pairs.items())
    (tmp_path / "made.csv").write_text(f"shop,item,y\n{made}")
    found.restore(tmp_path / "made.csv", tmp_path / "restored.csv")
    assert [tuple(row) for row in csv.reader((tmp_path / "restored.csv").open())][1:] == [
        (*key, key[1]) for key in keys
    ]


def test_dates_are_moved_to_years_with_the_same_calendar(public, tmp_path) -> None:
    days = [date(2020, 2, 15) + timedelta(days=n) for n in range(30)]
    (public / "sample_submission.csv").write_text("id,y\n" + "".join(f"{day}_a,0\n" for day in days))
    (public / "train.csv").write_text(
        "id,year,day,y\n2019-12-31_a,2019,20191231,5\n2019-12-30_a,2019,20191230,201906\n"
    )
    (public / "test.csv").write_text("id,day\n" + "".join(f"{day}_a,{day}\n" for day in days))
    found, target = permuted(public, tmp_path, {})
    rows = list(csv.DictReader((target / "test.csv").open()))
    moved = {row["id"]: date.fromisoformat(row["day"]) for row in rows}
    assert abs(found.years) == 28 and all(key == f"{day}_a" for key, day in moved.items())
    assert [day.replace(year=2020) for day in moved.values()] == days, "time goes on as it did"
    assert {day.weekday() for day in moved.values() if (day.month, day.day) == (2, 29)} == {5}, "a Saturday again"
    train = list(csv.DictReader((target / "train.csv").open()))
    assert [row["year"] for row in train] == [str(2019 + found.years)] * 2 and [row["y"] for row in train] == [
        "5",
        "201906",
    ]
    (tmp_path / "made.csv").write_text("id,y\n" + "".join(f"{key},1\n" for key in moved))
    found.restore(tmp_path / "made.csv", tmp_path / "restored.csv")
    assert (tmp_path / "restored.csv").read_text() == "id,y\n" + "".join(f"{day}_a,1\n" for day in days)


def test_ids_in_parquet_are_exchanged_and_types_stay(public, tmp_path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (public / "sample_submission.csv").write_text("id,y\n" + "".join(f"{n},0\n" for n in range(100, 130)))
    given = pyarrow.table({"x": [float(n) for n in range(100, 130)], "id": list(range(100, 130)), "l": [[1]] * 30})
    parquet.write_table(given, public / "test.parquet")
    found, target = permuted(public, tmp_path, {})
    made = parquet.read_table(target / "test.parquet")
    assert made.schema.types == given.schema.types
    assert {(str(int(row["x"])),): (str(row["id"]),) for row in made.to_pylist()} == found.new
    assert made["x"].to_pylist() != given["x"].to_pylist()


@pytest.mark.parametrize(
    ("change", "form", "why"),
    [
        ({"meta.csv": "id,store\nk1,3\nz,4\n"}, {}, "contains parts of the test rows' ids"),
        ({"test.parquet": "PAR1"}, {}, "is not a table"),
        ({"test.csv": "id,who\n" + "".join(f"k{n},k{n}x\n"[:-1] + "\n" for n in range(20))}, {}, None),
        ({"sample_submission.csv": "id,y\nk1,0\n"}, {}, "fewer than"),
        (
            {"sample_submission.csv": "id,y\n" + "".join(f"2020-01-{n:02},0\n" for n in range(1, 25))},
            {},
            "neither the ids of a table",
        ),
        (
            {"sample_submission.csv": "id,y\n" + "".join(f"{n}_1,0\n" for n in range(50))},
            {},
            "neither the ids of a table",
        ),
    ],
)
def test_ids_that_can_not_be_exchanged_safely_are_left_alone(
    public: Path, change: dict[str, str], form: dict[str, Any], why: str | None
) -> None:
    for name, text in change.items():
        (public / name).write_text(text)
    if why is None:
        permutation_of(task_of(**form), public, random.Random(1))
        return
    with pytest.raises(NotPermutable, match=why):
        permutation_of(task_of(**form), public, random.Random(1))


def test_tables_keep_their_order_and_their_form_and_name_the_same_files(public: Path, tmp_path: Path) -> None:
    ids = [f"k{number}" for number in range(20)]
    rows = "".join(f'"{key}","{number}, ""x""",test_images/{key}.png\r\n' for number, key in enumerate(ids))
    (public / "test.csv").write_text(f'"id","text",file\r\n{rows}', newline="")
    (public / "more.csv").write_text("\ufeffid,z\n" + "\n".join(f"{key},{number}" for number, key in enumerate(ids)))
    found = permutation_of(task_of(), public, random.Random(1))
    target = tmp_path / "target"
    target.mkdir()
    found.write(public, target)
    old = {new: key for (key,), (new,) in found.new.items()}
    lines = (target / "test.csv").read_bytes().decode().split("\r\n")
    assert lines[0] == '"id","text",file' and lines[-1] == ""
    assert lines[1:-1] == [f'"{key}","{old[key][1:]}, ""x""",test_images/{key}.png' for key in ids]
    assert (target / "more.csv").read_text() == "\ufeffid,z\n" + "\n".join(f"{key},{old[key][1:]}" for key in ids)
    assert [(target / "test_images" / f"{key}.png").read_text() for key in ids] == [
        f"picture of {old[key]}" for key in ids
    ]


@pytest.mark.parametrize(
    ("test", "more", "doubt"),
    [
        ([(f"k{n}", str(n)) for n in range(20)], {}, "The order of the rows"),
        ([(f"g{n // 5}_{n}", str(n * 7 % 20)) for n in range(20)], {}, "Parts of the ids"),
        ([(f"k{n}", str(n * 7 % 20)) for n in range(20)], {"boxes.csv": "image"}, "'image' of boxes.csv may refer"),
        ([(f"k{n}", str(n * 7 % 20)) for n in range(20)], {"pictures/{}_1.png": ""}, "File names"),
        ([(f"k{n}", str(n * 7 % 20)) for n in range(20)], {}, None),
    ],
)
def test_what_may_mean_more_than_is_understood_is_doubted(
    tmp_path: Path, test: list[tuple[str, str]], more: dict[str, str], doubt: str | None
) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "sample_submission.csv").write_text("id,y\n" + "".join(f"{key},0\n" for key, _ in test))
    (tmp_path / "test.csv").write_text("id,x\n" + "".join(f"{key},{cell}\n" for key, cell in test))
    for name, column in more.items():
        for key, _ in test:
            text = f"{column},b\n" + "".join(f"{other},0\n" for other, _ in test)
            (tmp_path / name.format(key)).write_text(text)
    found = permutation_of(task_of(), tmp_path, random.Random(1))
    assert [doubt in text for text in found.doubts] == [True] if doubt else found.doubts == []


def test_no_result_is_verified_beside_a_sign_that_answers_were_looked_up() -> None:
    again = Verification(status="verified", why="It achieves 1.", score=1.0, scores=(1.0,))
    for kind, level in (
        ("submitted-answers", "seen"),
        ("submitted-answers", "suspicious"),
        ("public-labels", "suspicious"),
    ):
        verdict = verdict_on((Evidence(kind=kind, level=level, why="The same."),), again)
        assert (verdict.status, verdict.trusted) == ("not checked", True)
    worse = Verification(status="not reproducible", why="It achieves 0.", score=1.0, scores=(0.0,))
    assert verdict_on((Evidence(kind="submitted-answers", level="seen", why="The same."),), worse).status == "tainted"
    assert verdict_on((Evidence(kind="noise-ceiling", level="suspicious", why="High."),), again).status == "verified"
