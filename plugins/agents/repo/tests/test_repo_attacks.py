"""Looking at a hostile folder runs nothing of it and reads nothing outside of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mleredux.errors import MlereduxError
from mleredux_agent_repo import sources
from mleredux_agent_repo.agents import agent_of
from mleredux_agent_repo.check_command import command
from mleredux_agent_repo.references import parse

pytestmark = pytest.mark.attack

PRIVATE = "the private bytes of another repository"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What exists as soon as a program of the repository was run; it would hold the environment."""
    monkeypatch.setenv("PLANTED_VARIABLE", "planted-0123456789")
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\nenv >>{tmp_path / 'ran'}\n[ -t 0 ] || cat\n")
    program.chmod(0o755)
    return tmp_path / "ran"


@pytest.fixture
def work(repository: Path, tmp_path: Path) -> Path:
    """A work tree at its commit, with everything unchanged."""
    return tmp_path / "work"


@pytest.fixture
def other(tmp_path: Path, git: Any) -> Path:
    """A private repository beside it."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "solve.py").write_text(f"# {PRIVATE}\n")
    shutil.copy(tmp_path / "work" / "mleredux-agent.toml", folder)
    (folder / "requirements.txt").write_text("")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "private")
    return folder


def configure(*lines: str) -> Callable[[Path, Path], None]:
    def trick(work: Path, evil: Path) -> None:
        with (work / ".git" / "config").open("a") as file:
            file.write("\n".join(lines).replace("EVIL", str(evil)) + "\n")

    return trick


def attributes(text: str) -> Callable[[Path, Path], None]:
    def trick(work: Path, evil: Path) -> None:
        (work / ".gitattributes").write_text(text)
        configure('[filter "x"]', "clean = EVIL", "smudge = EVIL", "process = EVIL", "required = true")(work, evil)
        configure('[diff "x"]', "textconv = EVIL", "command = EVIL", '[merge "x"]', "driver = EVIL")(work, evil)

    return trick


def hooks(work: Path, evil: Path) -> None:
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "post-upload-pack"):
        shutil.copy(evil, work / ".git" / "hooks" / name)


def worktree_config(work: Path, evil: Path) -> None:
    configure("[extensions]", "worktreeConfig = true")(work, evil)
    (work / ".git" / "config.worktree").write_text(f"[core]\nfsmonitor = {evil}\n")


def included(work: Path, evil: Path) -> None:
    configure("[include]", "path = ../inner.config")(work, evil)
    (work / "inner.config").write_text(f"[core]\nfsmonitor = {evil}\npager = {evil}\n")


def promised(work: Path, evil: Path) -> None:
    """A partial clone: a blob is missing, and a remote of its configuration would bring it."""
    configure("[core]", "repositoryformatversion = 1", "[extensions]", "partialClone = evil")(work, evil)
    configure('[remote "evil"]', "promisor = true", "url = ext::EVIL", "uploadpack = EVIL", "vcs = x")(work, evil)
    configure('[protocol "ext"]', "allow = always", "[core]", "sshCommand = EVIL", "gitProxy = EVIL")(work, evil)
    for found in list((work / ".git" / "objects").glob("??/*"))[:2]:
        found.unlink()


def nested(work: Path, evil: Path) -> None:
    inner = work / "vendor"
    shutil.copytree(work / ".git", inner / ".git")
    configure("[core]", "fsmonitor = EVIL", "worktree = ../..")(inner, evil)
    (work / ".gitmodules").write_text(f'[submodule "vendor"]\npath = vendor\nurl = ext::{evil}\nupdate = !{evil}\n')


TRICKS: dict[str, Callable[[Path, Path], None]] = {
    "clean filter": attributes("* filter=x\n"),
    "textconv and external diff": attributes("* diff=x merge=x\n"),
    "fsmonitor": configure("[core]", "fsmonitor = EVIL", "untrackedCache = true"),
    "hooks path": configure("[core]", "hooksPath = .."),
    "hooks": hooks,
    "pack objects hook": configure("[uploadpack]", "packObjectsHook = EVIL"),
    "ssh command": configure("[core]", "sshCommand = EVIL", "[remote]", "pushDefault = x"),
    "alias and pager": configure("[alias]", "status = !EVIL", "rev-parse = !EVIL", "[core]", "pager = EVIL"),
    "editor and credentials": configure("[core]", "editor = EVIL", "askPass = EVIL", "[credential]", "helper = !EVIL"),
    "alternate refs": configure("[core]", "alternateRefsCommand = EVIL"),
    "signatures": configure("[gpg]", "program = EVIL", "[log]", "showSignature = true"),
    "rewritten addresses": configure('[url "ext::EVIL"]', "insteadOf = file://", "insteadOf = /"),
    "work tree configuration": worktree_config,
    "included configuration": included,
    "promisor remote": promised,
    "nested repository": nested,
}


def look(work: Path, mark: Path, references: list[str], *, may_fail: bool) -> None:
    """Read a hostile folder in every way that runs nothing of it."""
    ended = CliRunner().invoke(command, ["--static", str(work)])
    assert not mark.exists()
    assert ended.exception is None or isinstance(ended.exception, (MlereduxError, SystemExit)), ended.exception
    for reference in references:
        try:
            assert "level" in (agent_of(reference).build.context or work).joinpath("solve.py").read_text()
        except MlereduxError:
            assert may_fail
    assert not mark.exists()


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_no_program_of_a_repository_is_run(work: Path, mark: Path, trick: Callable[[Path, Path], None]) -> None:
    trick(work, mark.with_name("evil.sh"))
    look(work, mark, [f"repo:{work}@main"], may_fail=trick is promised)


def test_no_program_is_run_where_all_tricks_are_tried_at_once(work: Path, mark: Path) -> None:
    for trick in TRICKS.values():
        if trick is not promised:
            trick(work, mark.with_name("evil.sh"))
    (work / "requirements.txt").write_text("# changed\n")
    look(work, mark, [f"repo:{work}", f"repo:{work}@v1"], may_fail=False)


def test_a_tree_is_written_as_the_bytes_of_its_blobs(work: Path, git: Any) -> None:
    (work / ".gitattributes").write_text("*.txt text eol=crlf ident\n*.md export-subst working-tree-encoding=UTF-16\n")
    (work / "a.txt").write_bytes(b"$Id$\nline\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "attributes")
    assert (sources.get(parse(f"repo:{work}@main")).folder / "a.txt").read_bytes() == b"$Id$\nline\n"


def _git_file(work: Path, other: Path) -> None:
    shutil.rmtree(work / ".git")
    (work / ".git").write_text(f"gitdir: {other / '.git'}\n")


def _git_link(work: Path, other: Path) -> None:
    shutil.rmtree(work / ".git")
    (work / ".git").symlink_to(other / ".git")


def _objects_link(work: Path, other: Path) -> None:
    shutil.rmtree(work / ".git" / "objects")
    (work / ".git" / "objects").symlink_to(other / ".git" / "objects")
    shutil.copy(other / ".git" / "refs" / "heads" / "main", work / ".git" / "refs" / "heads" / "main")


def _inner_links(work: Path, other: Path) -> None:
    for folder in (other / ".git" / "objects").iterdir():
        if len(folder.name) == 2:
            shutil.rmtree(work / ".git" / "objects" / folder.name, ignore_errors=True)
            (work / ".git" / "objects" / folder.name).symlink_to(folder)
    shutil.copy(other / ".git" / "refs" / "heads" / "main", work / ".git" / "refs" / "heads" / "main")


def _alternates(work: Path, other: Path) -> None:
    (work / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (work / ".git" / "objects" / "info" / "alternates").write_text(f"{other / '.git' / 'objects'}\n")
    shutil.copy(other / ".git" / "refs" / "heads" / "main", work / ".git" / "refs" / "heads" / "main")


def _ref_link(work: Path, other: Path) -> None:
    _inner_links(work, other)
    (work / ".git" / "refs" / "heads" / "main").unlink()
    (work / ".git" / "refs" / "heads" / "main").symlink_to(other / ".git" / "refs" / "heads" / "main")


def _common_folder(work: Path, other: Path) -> None:
    shutil.rmtree(work / ".git" / "objects")
    shutil.rmtree(work / ".git" / "refs")
    (work / ".git" / "commondir").write_text(f"{other / '.git'}\n")


def _work_tree(work: Path, other: Path) -> None:
    configure("[core]", f"worktree = {other}")(work, other)


@pytest.mark.parametrize(
    "trick",
    [_git_file, _git_link, _objects_link, _inner_links, _alternates, _ref_link, _common_folder, _work_tree],
)
def test_nothing_outside_of_a_repository_is_read(
    work: Path, other: Path, own_cache: Path, trick: Callable[[Path, Path], None], git: Any
) -> None:
    commit = git(other, "rev-parse", "HEAD")
    trick(work, other)
    for reference in (f"repo:{work}", f"repo:{work}@main", f"repo:{work}@{commit}"):
        try:
            agent_of(reference)
        except MlereduxError as error:
            assert "Traceback" not in str(error)
    found = [path for path in own_cache.rglob("*") if path.is_file() and PRIVATE in path.read_text("latin-1")]
    assert found == []


@pytest.mark.parametrize("folder", ["venv", ".venv", "node_modules", "__pycache__", "deep/node_modules/x"])
def test_no_folder_of_a_commit_is_exempt(work: Path, other: Path, git: Any, folder: str) -> None:
    (work / folder).mkdir(parents=True)
    (work / folder / "out").symlink_to(other)
    git(work, "add", "-fA")
    git(work, "commit", "-qm", "link")
    for reference in (f"repo:{work}@main#{folder}/out", f"repo:{work}@main"):
        with pytest.raises(MlereduxError, match=r"out in .* is a link that points outside"):
            agent_of(reference)
    assert not (other / "mleredux.Dockerfile").exists()


def _link(name: str, target: str) -> Callable[[Path], None]:
    def make(work: Path) -> None:
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(target)

    return make


def _pipe(work: Path) -> None:
    (work / "mleredux-agent.toml").unlink()
    os.mkfifo(work / "mleredux-agent.toml")


def _deep(work: Path) -> None:
    place = work
    for _ in range(110):
        place /= "d"
    place.mkdir(parents=True)
    (place / "x").write_text("")


@pytest.mark.parametrize(
    ("trick", "sentence"),
    [
        (_link("mleredux-agent.toml", "/etc/hostname"), "is a link that points outside"),
        (_link("requirements.txt", "/etc/passwd"), "is a link that points outside"),
        (_link("Dockerfile", "../private/solve.py"), "is a link that points outside"),
        (_link(".dockerignore", "/proc/self/environ"), "is a link that points outside"),
        (_link("mleredux.Dockerfile", "/tmp/written-by-nobody"), "is a link that points outside"),
        (_link("circle", "circle"), "is a link that points outside"),
        (_link("chain", "sub/../../private"), "is a link that points outside"),
        (_pipe, "is neither a file nor a folder"),
        (_deep, "nested more than 100 levels"),
    ],
)
def test_paths_of_a_folder_stay_beneath_it(
    work: Path, other: Path, trick: Callable[[Path], None], sentence: str
) -> None:
    trick(work)
    with pytest.raises(MlereduxError, match=sentence):
        agent_of(f"repo:{work}")


def test_a_generated_dockerfile_replaces_a_link_of_its_name(work: Path) -> None:
    (work / "mleredux.Dockerfile").symlink_to("solve.py")
    built = agent_of(f"repo:{work}").build.context
    assert built is not None and "level" in (built / "solve.py").read_text()
    assert "FROM" in (built / "mleredux.Dockerfile").read_text()


def test_an_ignored_file_is_no_change_and_a_new_one_is(work: Path, git: Any) -> None:
    (work / ".gitignore").write_text("build/\n*.log\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "ignore")
    (work / "build" / "x").mkdir(parents=True)
    (work / "build" / "x" / "big").write_text("x")
    (work / "a.log").write_text("x")
    (work / "venv").mkdir()
    (work / "venv" / "link").symlink_to("/usr")
    assert sources.get(parse(f"repo:{work}")).commit == git(work, "rev-parse", "HEAD")
    (work / "new.py").write_text("x")
    assert sources.get(parse(f"repo:{work}")).commit.startswith("copy-")
