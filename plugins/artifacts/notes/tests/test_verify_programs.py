"""Honest programs, in the styles that people write, and cheats: `honest/TASK-STYLE`, `cheats/TASK-TRICK`."""

from __future__ import annotations

import csv
import shutil
import subprocess
import uuid
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux_artifact_notes.rerun import shares
from mleredux_support.commands import mleredux
from mleredux_support.server import ServerProcess
from mleredux_testing.pytest_plugin import BASE_IMAGE

HERE = Path(__file__).parent
KINDS = HERE / "kinds_plugin.py"
HONEST, CHEATS = (sorted(path.name for path in (HERE / kind).iterdir()) for kind in ("honest", "cheats"))
CACHING = """
import csv, json, os, pathlib

data, cache = os.environ["MLEREDUX_DATA_DIR"], pathlib.Path({place}, {name!r})
if not cache.exists():
    rows = {{name: list(csv.DictReader(open(f"{{data}}/{{name}}.csv"))) for name in ("train", "test")}}
    cache.write_text(json.dumps(rows))
rows = json.loads(cache.read_text())
with open("submission.csv", "w") as file:
    print("id,species", file=file)
    for row in rows["test"]:
        near = min(rows["train"], key=lambda r: sum((float(r[k]) - float(row[k])) ** 2 for k in ("petal", "sepal")))
        print(row["id"], near["species"], sep=",", file=file)
"""
WITHOUT_PACKAGES = ("flowers-awk", "flowers-helper-modules", "houses-quotes-by-hand", "words-cache-beside-script")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for prepared data."""
    return tmp_path_factory.mktemp("data")


def report_of(folder: Path, sandbox: str, data: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The report of a program that ran and was verified."""
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(data))
    monkeypatch.setenv("MLEREDUX_RUNS_DIR", str(runs))
    task = folder.name.partition("-")[0]
    limits = ("--time-limit", "60s") if sandbox == "process" else ("--time-limit", "5m")
    ran = mleredux(
        *("-p", str(KINDS), "run", task, "--agent", str(folder), "--sandbox", sandbox, "--verify", *limits, "--json")
    )
    assert ran.code == 0, ran.err + ran.out
    shown = mleredux("-p", str(KINDS), "runs", "show", "last", "--json")
    report: dict[str, Any] = shown.json["report"]
    return report


def check_honest(report: dict[str, Any]) -> None:
    verdict = report["verdict"]
    assert report["gold_medal"] and not verdict["withheld"], report
    if verdict["status"] != "verified":
        # Simple models separate the same classes whatever they are called; `15 * rooms` is a rule that is not learned.
        allowed = {"houses": "much worse than before", "wells": None}
        allowed |= {"sales": "The code contains years", "visits": "The order of the ids"}
        why = allowed.get(report["competition_id"], "under other names")
        assert verdict["status"] == "not checked" and why is not None and why in verdict["why"], verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_honest_programs_keep_their_medal(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_honest(report_of(HERE / "honest" / name, "process", data, tmp_path, monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        '"/tmp"',
        '"/var/tmp"',
        "'/var', 'tmp'",
        'os.path.join("/dev/shm", "")',
        'os.path.join(os.sep, "tmp")',
        '"/root"',
        "__import__('pwd').getpwuid(0)[5]",
    ],
)
def test_a_cache_of_the_first_data_condemns_nobody(
    place: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing isolates the process sandbox: what a program keeps outside its run has the first ids."""
    folder, name = tmp_path / "flowers-cache", f"mleredux-{uuid.uuid4()}.json"
    folder.mkdir()
    (folder / "solve.py").write_text(CACHING.format(place=place, name=name))
    try:
        report = report_of(folder, "process", data, tmp_path / "runs", monkeypatch)
    finally:
        [cache] = [path for path in map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/root")) if (path / name).exists()]
        (cache / name).unlink()
    verdict = report["verdict"]
    assert verdict["status"] == "not checked" and not verdict["withheld"], verdict
    assert f"/{cache.parts[1]}" in verdict["why"] or "the user's home" in verdict["why"], verdict


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("settings.json", '{"cache": "/var/tmp/features"}', "/var"),
        ("Makefile", "CACHE := /tmp/features", "/tmp"),
        ("solve.py", 'sqlite3.connect("file:///tmp/rows.db", uri=True)', "/tmp"),
        ("solve.py", 'create_engine("sqlite:////tmp/rows.db")', "/tmp"),
        ("solve.py", 'create_engine("sqlite:///rows.db"), get("https://tmp/x"), open("input/tmp/x")', None),
    ],
)
def test_any_file_of_a_program_may_name_a_place_outside(
    name: str, text: str, place: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert shares(tmp_path) == (place and f"files in {place} as they were before the run")


def test_a_block_of_shared_memory_outlives_a_run(tmp_path: Path) -> None:
    name = f"mleredux-{uuid.uuid4()}"
    (tmp_path / "solve.py").write_text(f"from multiprocessing.shared_memory import *\nSharedMemory({name!r})\n")
    assert shares(tmp_path) is None
    block = SharedMemory(name, create=True, size=1)
    try:
        assert "/dev/shm" in str(shares(tmp_path))
    finally:
        block.close()
        block.unlink()


def bring_along(name: str, data: Path, target: Path) -> Path:
    """A cheat, with the rows and the answers of its task in its folder."""
    task = name.partition("-")[0]
    catalogue = Catalogue(load=(str(KINDS),))
    prepared = prepare(catalogue.task(task), catalogue, DataStore(data))
    header, *train = csv.reader((prepared.public / "train.csv").open(newline=""))
    test = list(csv.reader((prepared.public / "test.csv").open(newline="")))[1:]
    answers = dict(csv.reader((prepared.private / "answers.csv").open()))
    shutil.copytree(HERE / "cheats" / name, target / name)
    with (target / name / "known.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *train, *([*row, answers[row[0]]] for row in test)])
    return target / name


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_never_verified(name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bring_along(name, data, tmp_path / "agent")
    report = report_of(folder, "process", data, tmp_path / "runs", monkeypatch)
    verdict = report["verdict"]
    assert verdict["status"] in ("not checked", "not reproducible", "tainted"), verdict
    assert report["gold_medal"] or verdict["withheld"]["gold_medal"], "it would pay"


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.usefixtures("docker_base_image")
def test_a_server_verifies_programs_in_containers(data: Path, tmp_path: Path) -> None:
    """Those that need no packages; all, and all cheats, if the base image has scikit-learn, pandas and Pillow.

    To try all, build an image from the base image with `RUN python3 -m pip install --break-system-packages numpy pandas
    scikit-learn pillow`, and run this test with `-s` and `MLEREDUX_BASE_IMAGE` set to the image's name.
    """
    from mleredux_client import Client

    probe = ("docker", "run", "--rm", BASE_IMAGE, "python3", "-c", "import pandas, PIL, sklearn")
    everything = subprocess.run(probe, capture_output=True, timeout=300).returncode == 0
    honest = HONEST if everything else WITHOUT_PACKAGES
    tricks = CHEATS if everything else ("flowers-renames-classes", "flowers-by-variable")
    more = {"MLEREDUX_PLUGINS": str(KINDS), "MLEREDUX_BASE_IMAGE": BASE_IMAGE}
    cheats = [bring_along(name, data, tmp_path) for name in tricks]
    with (
        ServerProcess(tmp_path / "runs", "--data-dir", str(data), env=more) as server,
        Client(server.url, server.token) as client,
    ):
        folders = [*(HERE / "honest" / name for name in honest), *cheats]
        runs = [
            client.run(folder.name.partition("-")[0], str(folder), sandbox="docker", time_limit="5m")
            for folder in folders
        ]
        wrong = []
        for folder, run in zip(folders, runs, strict=True):
            report = run.wait(1800).report
            shown = report.model_dump(mode="json") if report else {}
            status = shown.get("verdict", {}).get("status")
            print(folder.parent.name, folder.name, status, shown.get("gold_medal"), flush=True)
            try:
                if folder in cheats:
                    assert status in ("not checked", "not reproducible", "tainted"), shown
                else:
                    check_honest(shown)
            except (AssertionError, KeyError) as error:
                wrong.append((folder.name, str(error)[:2000]))
    assert not wrong, wrong
