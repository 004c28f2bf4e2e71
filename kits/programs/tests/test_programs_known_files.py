"""Answers that lie beside the interpreter's own files: in libraries, and in folders of mleredux."""

from __future__ import annotations

import math
import os
import shutil
import site
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from random import Random

import pytest
from mleredux_programs import confined, run_confined
from mleredux_programs.confined import hidden_paths
from mleredux_programs.known_files import KnownFiles

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
SECRET = b"0.0,5.0,13.0,secret\n"
DIGITS = "sklearn.datasets.load_digits"
COPIES = (
    "lib/python3.11/site-packages/sklearn/datasets/data/digits.csv.gz",
    "lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz",
    "pkgs/scikit-learn-1.9.0-py311/lib/python3.11/site-packages/sklearn/datasets/data/digits.csv.gz",
    "envs/other/lib/python3.12/site-packages/sklearn/datasets/data/digits.csv.gz",
    "pkgs/scikit-learn-1.9.0-py311.conda",
    "pkgs/scikit-learn-1.9.0.tar.bz2",
    "wheels/scikit_learn-1.9.0-cp311-cp311-manylinux.whl",
    "eggs/scikit_learn-1.9.0-py3.11.egg",
    "eggs/sklearn-0.0.zip",
    "vendored/sklearn/datasets/data/renamed.bin",
    "vendored/of/others/sklearn/datasets/data/digits.csv",
    "lib/R/library/datasets/data/Digits.RData",
    "lib/R/library/digits/data/digits.rds",
    "share/orange/datasets/digits.tab",
    "share/datasets/uci-digits.train.csv.xz",
    "share/numpy/digits.npz",
    "share/arrow/DIGITS.parquet",
    "share/digits.csv.gz.bak",
    "share/digits.csv~",
    "share/digits.sqlite",
    "share/digits.tgz",
    "share/digits\udcff.csv",
    "share/a\nb/.digits.csv.swp",
    "cache/apt/archives/python3-sklearn_1.9.0_all.deb",
    "cache/scikit_learn-1.9.0.tar.zst",
    "cache/pip/http-v2/0/1/2/3/4/01234.body",
)
FOREIGN = (
    "share/wine.csv",
    "lib/python3.11/digits.py",
    "lib/libdigits.so.1",
    "share/digits.html",
    "bin/digits",
    "lib/codes/digitsum.txt",
    "share/doc/scikit-learn.txt",
)
READ = """
import os
for parent, _, names in os.walk({root!r}):
    for name in names:
        try:
            if {secret!r} in open(os.path.join(parent, name), "rb").read():
                print(os.path.relpath(os.path.join(parent, name), {root!r}))
        except OSError:
            pass
"""


def _write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(SECRET)


@pytest.fixture
def bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree that is bound beside the interpreter's."""
    tree, readable = tmp_path / "prefix", confined._readable()
    tree.mkdir()
    tmp_path.chmod(0o755)
    monkeypatch.setattr(confined, "_readable", lambda: [*readable, str(tree)])
    return tree


def _reads(tree: Path, *, known: tuple[str, ...] = (), private: tuple[Path, ...] = ()) -> set[str]:
    script = READ.format(root=str(tree), secret=SECRET)
    found = run_confined(["-c", script], {}, [], known_answers=known, private=private)
    assert found.code == 0, found.log
    return set(found.log.split())


def test_copies_of_known_answers_are_read_in_no_tree(bound: Path) -> None:
    _write(bound, *COPIES, *FOREIGN)
    assert _reads(bound, known=(DIGITS,)) == set(FOREIGN)


def test_a_task_hides_its_own_answers_only(bound: Path) -> None:
    _write(bound, "share/digits.csv", "share/wine.csv", "share/wine_data.csv.gz")
    assert _reads(bound, known=("sklearn.datasets.load_wine",)) == {"share/digits.csv"}
    assert _reads(bound) == {"share/digits.csv", "share/wine.csv", "share/wine_data.csv.gz"}


def test_the_environment_reads_its_own_packages() -> None:
    script = "import numpy, sklearn.linear_model, pydantic; from sklearn.datasets import make_blobs; print(make_blobs)"
    found = run_confined(["-c", script], {}, [], known_answers=(DIGITS,))
    assert found.code == 0, found.log


@pytest.mark.parametrize("function", ["digits", "wine", "breast_cancer", "diabetes"])
def test_no_loader_of_the_interpreters_own_copies_works(function: str) -> None:
    name = f"sklearn.datasets.load_{function}"
    script = f"import sklearn.datasets; {name}(); print('loaded')"
    assert "loaded" in run_confined(["-c", script], {}, []).log
    found = run_confined(["-c", script], {}, [], known_answers=(name,))
    assert "FileNotFoundError" in found.log and "loaded" not in found.log


LOCATIONS = ("data", "share/deep/er/data", "lib/python3.11/data", "data with blanks, commas", "lib/site-packages/data")


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("spelling", ["plain", "link", "dots", "bind mount"])
def test_private_folders_beside_the_interpreter_are_read_nowhere(
    location: str, spelling: str, bound: Path, tmp_path: Path
) -> None:
    home = bound / location
    _write(
        home,
        "digits/prepared/private/answers.csv",
        "digits/prepared/public/train.csv",
        "digits/raw/all.csv",
        "digits/.making-prepared-x/private/answers.csv",
    )
    named = home
    if spelling == "link":
        named = tmp_path / "link"
        named.symlink_to(home, target_is_directory=True)
    if spelling == "dots":
        named = home / "digits" / ".."
    with _mounted(home, tmp_path / "mounted") if spelling == "bind mount" else nullcontext(named) as place:
        assert _reads(bound, private=(place / "digits/prepared",)) == set()
    assert _reads(bound) == set()


def test_runs_and_caches_beside_the_interpreter_are_read_nowhere(bound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(bound, "runs/index.sqlite", "runs/a/output/submission.csv", "other/b/events.jsonl", "other/b/output/c.csv")
    _write(bound, "cache/mleredux/data/answers.csv", "config/mleredux/salt")
    monkeypatch.setenv("XDG_CACHE_HOME", str(bound / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(bound / "config"))
    assert _reads(bound) == set()


def test_a_library_whose_files_are_named_otherwise_is_hidden_whole() -> None:
    files = ["/usr/lib/library/data/a.bin", "/usr/lib/library/data/b.bin", "/usr/lib/library/code.py", "/x/answers.csv"]
    assert KnownFiles(["library.get_answers"]).within(files) == [*files[:2], files[3]]


def test_walking_the_environment_finds_what_is_there() -> None:
    found = list(hidden_paths([sys.prefix], KnownFiles([DIGITS]), (), site.getsitepackages()))
    assert any(path.endswith("sklearn/datasets/data") for path in found)
    assert not any(path.endswith("-packages") for path in found)


CHANGES: tuple[Callable[[Path], object], ...] = (
    lambda folder: _write(folder, "digits.csv"),
    lambda folder: _write(folder, "notes.txt"),
    lambda folder: _write(folder, "run/events.jsonl"),
    lambda folder: _write(folder, "site-packages/sklearn/datasets/data/a.bin"),
    lambda folder: _write(folder, "x/prepared/private/answers.csv"),
    lambda folder: (folder / "digits.csv").rename(folder / "renamed.csv"),
    lambda folder: (folder / "notes.txt").rename(folder / "digits.tsv"),
    lambda folder: (folder / "run").rename(folder / ".making-run"),
    lambda folder: shutil.rmtree(folder / "x"),
    lambda folder: (folder / "digits.csv").unlink(),
    lambda folder: (folder / "notes.txt").replace(folder / "digits.csv"),
    lambda folder: (folder / "link").symlink_to(folder / "run"),
)


@pytest.mark.parametrize("seed", range(3))
def test_folders_are_listed_again_after_each_change(seed: int, bound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a folder's time of modification is set back."""
    folders, random = [bound / "a", bound / "a/b", bound / "c"], Random(seed)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)

    def hidden(settled: float) -> list[str]:
        monkeypatch.setattr(confined, "_SETTLED_SECONDS", settled)
        return sorted(hidden_paths([str(bound)], KnownFiles([DIGITS]), (), ()))

    known, results = confined._listed.cache_info(), set()
    for _ in range(40):
        folder = random.choice(folders)
        times = folder.stat()
        with suppress(OSError):
            random.choice(CHANGES)(folder)
        os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))
        time.sleep(0.02)
        assert hidden(0.01) == hidden(math.inf)
        results.add(tuple(hidden(0.01)))
    assert len(results) > 10 and confined._listed.cache_info().hits > known.hits + 100


@contextmanager
def _mounted(folder: Path, place: Path) -> Iterator[Path]:
    """The folder under another path, by a mount."""
    if os.getuid():
        pytest.skip("mounts need root")
    place.mkdir()
    subprocess.run(["mount", "--bind", folder, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)
