"""One source, two clients: the synchronous one is generated, and has the same nouns."""

from __future__ import annotations

import inspect
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import mleredux_client
import pytest
from mleredux_client import AsyncClient, Client, calls

PACKAGE = Path(__file__).parents[1]
PAIRS = [
    (getattr(mleredux_client, name), getattr(mleredux_client, name.removeprefix("Async")))
    for name in mleredux_client.__all__
    if name.startswith("Async")
]


generator = SimpleNamespace(**runpy.run_path(str(PACKAGE / "generate_sync.py")))


def test_the_synchronous_client_is_made_of_the_asynchronous_one(tmp_path: Path) -> None:
    """As git ignores it, it is generated before tests; what is current stays as it is, and what has no source goes."""
    generator.generate(tmp_path)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in generator.TARGET.glob("*.py")}
    assert made.keys() == {path.name for path in generator.SOURCE.glob("*.py")}
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / "runs.py").write_text("stale")
    (tmp_path / "gone.py").write_text("")
    generator.generate(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == made
    del times["runs.py"]
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in times} == times


def test_git_has_no_copy_of_the_synchronous_client() -> None:
    command = ["git", "ls-files", "src/mleredux_client/_sync"]
    assert subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--wheel"], []], ids=["from the tree", "from an sdist"])
def test_wheels_have_the_synchronous_client(options: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "with a blank"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("_sync", "__pycache__", "tests"))
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "build", "--quiet", *options, "-o", str(tmp_path), str(folder)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {Path(name).name for name in archive.namelist() if name.startswith("mleredux_client/_sync/")}
    assert packed == {path.name for path in generator.SOURCE.glob("*.py")}


@pytest.mark.parametrize(("waiting", "plain"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_have_the_same_methods_with_the_same_arguments(waiting: type, plain: type) -> None:
    names = {name.replace("aclose", "close") for name in dir(waiting) if not name.startswith("_")}
    assert names == {name for name in dir(plain) if not name.startswith("_")}
    for name in names:
        one, other = getattr(waiting, "aclose" if name == "close" else name), getattr(plain, name)
        if callable(one):
            assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
            assert not inspect.iscoroutinefunction(other)


@pytest.mark.parametrize("client", [AsyncClient, Client])
def test_an_experiment_takes_the_arguments_of_its_runs(client: type) -> None:
    one, many = inspect.signature(client.run).parameters, inspect.signature(client.experiment).parameters
    assert one.keys() - {"self", "task", "agent", "seed", "wait"} == calls.RunFields.__annotations__.keys()
    assert many["settings"].kind is inspect.Parameter.VAR_KEYWORD
    kept = {"defaults": calls.run_fields(), "none": calls.run_fields(**dict.fromkeys(calls.RunFields.__annotations__))}
    assert kept["defaults"] == kept["none"] and not calls.known(kept["none"])


@pytest.mark.parametrize("name", ["sandbx", "seed", "task"])
def test_an_unknown_argument_of_an_experiment_is_refused(name: str) -> None:
    with Client("http://127.0.0.1:1", "mlr_x") as client, pytest.raises(TypeError, match=name):
        client.experiment(["digits"], **{name: "x"})


def test_nothing_of_the_other_world_is_left_in_the_synchronous_one() -> None:
    for path in (PACKAGE / "src/mleredux_client/_sync").glob("*.py"):
        text = path.read_text()
        assert "await" not in text and "asyncio" not in text and " Async" not in text, path


def test_every_public_thing_says_what_it_is() -> None:
    for kind in (AsyncClient, Client, mleredux_client.Run, mleredux_client.Artifacts, mleredux_client.Experiment):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"
