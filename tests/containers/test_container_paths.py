"""Users' folders have any names: for runs, data, agents, caches, homes and temporary files, in every sandbox."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import mleredux
import pytest
from mleredux.plugin.agent import split_place, written_place
from mleredux.plugin.artifact import Run
from mleredux_support.commands import mleredux as mleredux_command
from mleredux_testing.names import ODD_NAME

FOLDERS = ("runs", "data", "agents", "home", "tmp")
KINDS = ("dummy", "script", "shell", "notebook", "folder")
LONG_NAME = "/".join(letter * 200 for letter in "abc")
_PYTHON = """\
import multiprocessing, os, pathlib, shutil, subprocess, sys
out = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"])
if __name__ == "__main__":
    with multiprocessing.get_context("forkserver").Manager() as manager:
        print("managed", list(manager.list([1])))
    subprocess.run(f"cp {os.environ['MLEREDUX_DATA_DIR']}/sample_submission.csv {out}/copy.csv", shell=True, check=True)
    assert pathlib.Path("copy.csv").samefile(out / "copy.csv") and pathlib.Path(__file__).is_file()
    shutil.copy(out / "copy.csv", os.environ["MLEREDUX_SUBMISSION"])
"""
_SHELL = """\
set -eu
ls $HOME ${TMPDIR:-/tmp} $PWD
cp $MLEREDUX_DATA_DIR/sample_submission.csv $MLEREDUX_SUBMISSION
sh $MLEREDUX_TASK_DIR/validate.sh
"""
_CELL = """\
import os, shutil
shutil.copy(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""
_MANIFEST = '[agent]\nid = "mine"\ncommand = ["sh", "-c", "cat /opt/agent/name; exec python /opt/agent/solve.py"]\n'
_NEEDS = '# /// script\n# dependencies = ["tabulate==0.9.0"]\n# ///\nimport subprocess, tabulate\n'
_NEEDS += 'subprocess.run(["tabulate", "--help"], check=True)\n'


_NAMES = tuple(
    os.fsdecode(name.encode() if isinstance(name, str) else name)
    for name in (
        *("a\\b.txt", "\\x41.txt", "new\nline.csv", "x%2Fy.md", "h#a?b&c=d.txt", " two words .txt", "-rf", "tab\t.txt"),
        *(
            "ü漢😀.png",
            "esc\x1b[31m.log",
            "<b>&amp;\"'.html",
            "%s {0}.json",
            "C:aux",
            "~",
            "rtl\u202e.txt",
            "`$(id)`.py",
        ),
        *(b"bad\xff\xfe.bin", b"\xed\xa0\x80", "x" * 250),
    )
)
_WRITES = f"""\
for folder in (out, out / "logs", out / "code", out / "sub\\\\dir %"):
    folder.mkdir(exist_ok=True)
    for name in {_NAMES!a}:
        (folder / name).write_text(ascii(name))
"""


def _written(folder: Path, kind: str) -> str:
    """Write an agent of a kind into a folder; return its name."""
    book = {"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}]}
    book["cells"][0]["source"] = _CELL  # type: ignore[assignment]
    files = {
        "script": {"solve it's $HOME.py": _PYTHON},
        "needs": {"needs.py": _NEEDS + _PYTHON},
        "names": {"names.py": _PYTHON + _WRITES},
        "shell": {"run (1).sh": _SHELL},
        "notebook": {"my book.ipynb": json.dumps({**book, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})},
        "folder": {"mleredux-agent.toml": _MANIFEST, "solve.py": _PYTHON, "name": "of it\n"},
    }.get(kind)
    if files is None:
        return kind  # of a plugin
    home = folder / f"{kind}#1 @x"
    home.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (home / name).write_text(text)
    if kind == "folder" and not (home / ".git").exists():
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm."]):
            subprocess.run(["git", *command], cwd=home, check=True)
    return str(home if kind == "folder" else home / next(iter(files)))


@pytest.fixture(scope="module", params=["odd", "long", "link"])
def top(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a name, the user's home and temporary folder in it."""
    made = tmp_path_factory.mktemp("top")
    made.chmod(0o755)
    folder = made / {"odd": ODD_NAME, "long": LONG_NAME, "link": "there"}[request.param]
    if request.param == "link":
        (made / "here is, it").mkdir()
        folder.symlink_to("here is, it")
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
    index = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux" / "index"
    (folder / "home" / ".cache" / "mleredux").mkdir(parents=True)
    (folder / "home" / ".cache" / "mleredux" / "index").symlink_to(index)  # making it takes seconds
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        patch.setenv("TMPDIR", str(folder / "tmp"))
        patch.delenv("XDG_CACHE_HOME", raising=False)
        patch.setattr(tempfile, "tempdir", None)
        yield folder


def _run(top: Path, sandbox: str, kind: str) -> Run:
    agent = _written(top / "agents", kind)
    limits = {"memory_mb": 1024, "disk_mb": 200}
    folders = {"runs_dir": top / "runs", "data_dir": top / "data"}
    run = mleredux.run("digits", agent, sandbox=sandbox, time_limit=120, limits=limits, **folders)
    assert run.state == "done", (run.message, run.agent_log.read_text(errors="replace"))
    report = run.report
    assert report is not None and report.valid_submission
    assert run.path.is_relative_to(top / "runs") and (run.path / "report.html").is_file()
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_of_any_kind_works_in_any_folder(top: Path, kind: str) -> None:
    log = _run(top, "process", kind).agent_log.read_text()
    assert ("managed [1]" in log) == (kind in ("script", "folder"))


@pytest.mark.parametrize("top", ["odd"], indirect=True)
def test_packages_of_a_script_are_installed_in_any_folder(top: Path) -> None:
    assert "managed [1]" in _run(top, "process", "needs").agent_log.read_text()


@pytest.mark.slow
@pytest.mark.engines("docker", "podman", "apptainer")
@pytest.mark.parametrize(
    ("top", "kind"),
    [*(("odd", kind) for kind in KINDS), ("long", "shell"), ("long", "notebook"), ("link", "script")],
    indirect=["top"],
)
def test_containers_work_in_any_folder(engine: str, top: Path, kind: str) -> None:
    _run(top, engine, kind)


@pytest.mark.engines("docker", "podman", "apptainer")
@pytest.mark.parametrize("temporary", ["missing", "file"])
def test_containers_work_without_a_temporary_folder(
    engine: str, temporary: str, tmp_path: Path, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    run = mleredux.run("digits", "dummy", sandbox=engine, time_limit=120)
    assert run.state == "done", (run.message, run.agent_log.read_text(errors="replace"))


@pytest.mark.parametrize("top", ["odd"], indirect=True)
def test_files_of_any_name_are_copied_listed_and_shown(top: Path, tmp_path: Path) -> None:
    run = _run(top, "process", "names")
    options = ("--runs-dir", str(top / "runs"))
    assert mleredux_command("artifacts", run.id, *options, "--output", str(tmp_path / "copy")).code == 0
    assert _contents(tmp_path / "copy" / "output") == _contents(run.output_dir)
    assert {os.fsencode(name) for name in _NAMES} <= {os.path.basename(path) for path in _contents(run.output_dir)}
    assert mleredux_command("view", *options, "--output", str(tmp_path / "pages")).code == 0
    pages = list((tmp_path / "pages").rglob("*.html"))
    assert not [page for page in pages if "There is no file" in page.read_text()]
    links = [(page, link) for page in (run.path / "report.html", *pages) for link in _links(page)]
    assert len(links) > 20 * len(_NAMES)
    assert not [link for page, link in links if not os.path.lexists(os.path.join(os.fsencode(page.parent), link))]


def _contents(folder: Path) -> dict[bytes, bytes]:
    found = {os.fsencode(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def _links(page: Path) -> Iterator[bytes]:
    """Relative links of a page, as paths."""
    for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text()):
        if not re.match("[a-z]+:", link):
            yield unquote_to_bytes(html.unescape(link))


@pytest.mark.parametrize("top", ["odd"], indirect=True)
def test_an_interpreter_and_a_working_directory_may_be_anywhere(top: Path) -> None:
    (top / "venv").symlink_to(sys.prefix)
    python = top / "venv" / "bin" / Path(sys.executable).name
    agent = Path(_written(top / "agents", "shell")).relative_to(top)
    (top / agent).write_text(_SHELL + "command -v python\n")
    words = ("run", "digits", "--agent", str(agent), "--sandbox", "process", "--data-dir", "data", "--json")
    done = subprocess.run([python, "-m", "mleredux", *words], cwd=top, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = Run(Path(json.loads(done.stdout)["path"]))
    assert run.path.parent == top / "runs"
    found = Path(run.agent_log.read_text().splitlines()[-1])
    assert ":" not in str(found) and found.samefile(python)


def test_a_name_that_is_not_text_is_refused_before_anything_runs(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"runs \xff")
    for folders in ({"runs_dir": folder}, {"runs_dir": tmp_path, "data_dir": folder}):
        with pytest.raises(mleredux.errors.MlereduxError, match=r"runs \\xff is not UTF-8"):
            mleredux.run("digits", "dummy", sandbox="process", **folders)
    assert list(tmp_path.iterdir()) == []


def test_agents_are_found_where_their_names_hold_what_references_do(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a#b", "a@b#c@d", "a%23b", "a:b", "x/a#b#c"):
        (tmp_path / name / "sub #1").mkdir(parents=True)
        for wanted, ref, folder in ((name, None, ""), (f"{name}@v1", "v1", ""), (f"{name}@v1#sub", "v1", "sub")):
            assert split_place(wanted) == (name, ref, folder)
            assert split_place(str(tmp_path / wanted)) == (str(tmp_path / name), ref, folder)
        pinned = f"{written_place(tmp_path / name)}@v1#sub #1"
        assert split_place(pinned) == (str(tmp_path / name), "v1", "sub #1")
    gone = tmp_path / os.fsdecode(b"not there #1@2%23\xff\n")
    assert split_place(f"{written_place(gone)}@v1#sub") == (str(gone), "v1", "sub")
