"""Submodules and files of Git LFS: fetched by the rules for the repository, or named in one sentence."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mleredux.errors import MlereduxError
from mleredux_agent_repo.agents import agent_of

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{:064d}\nsize 104857600\n"
Git = Callable[..., str]


@pytest.fixture
def library(tmp_path: Path, git: Git) -> Path:
    """A bare repository beside the agent's, with a module."""
    work = tmp_path / "library"
    work.mkdir()
    (work / "util.py").write_text("NAME = 'of a submodule'\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    git(tmp_path, "clone", "-q", "--bare", str(work), str(tmp_path / "library.git"))
    return tmp_path / "library.git"


@pytest.fixture
def work(tmp_path: Path, repository: Path, library: Path, git: Git) -> Path:
    """A work tree of the agent's repository, with the library as a submodule in `lib`."""
    git(tmp_path, "clone", "-q", str(repository), str(tmp_path / "with-submodule"))
    place = tmp_path / "with-submodule"
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    return place


def publish(work: Path, repository: Path, git: Git, address: str) -> None:
    """Push the work tree with this address of the submodule."""
    git(work, "config", "--file", ".gitmodules", "submodule.lib.url", address)
    git(work, "add", "-A")
    git(work, "commit", "-qm", "a submodule")
    git(work, "push", "-q", str(repository), "HEAD:refs/heads/modules")


@pytest.mark.parametrize("relative", [True, False])
def test_a_submodule_is_fetched_from_the_repositorys_host(
    work: Path, repository: Path, smart_http: str, git: Git, relative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "127.0.0.1")
    publish(work, repository, git, "../library.git" if relative else smart_http.replace("agent.git", "library.git"))
    folder = agent_of(f"repo:{smart_http}@modules").build.folder
    assert folder is not None and (folder.path / "lib" / "util.py").read_text() == "NAME = 'of a submodule'\n"
    assert not list(folder.path.rglob(".git"))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/srv/library.git", "is not a URL of a server"),
        ("file:///srv/library.git", "is not a URL of a server"),
        ("ext::sh -c true", "."),
        ("https://169.254.169.254/library.git", "its host 169.254.169.254 differs"),
        ("https://evil.example/library.git", "its host evil.example differs"),
        ("https://user:password@127.0.0.1/library.git", "is not a URL of a server"),
        ("git@evil.example:team/library.git", "its host evil.example differs"),
        ("http://127.0.0.1.evil.example/library.git", "."),
        ("../../../../etc", "."),
        ("-c core.sshCommand=x", "."),
        ("", "."),
    ],
)
def test_a_submodule_from_elsewhere_is_refused(
    work: Path,
    repository: Path,
    smart_http: str,
    git: Git,
    address: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "*, 127.0.0.1")
    publish(work, repository, git, address)
    with pytest.raises(MlereduxError, match=r"submodule.? ?.*lib") as caught:
        agent_of(f"repo:{smart_http}@modules")
    assert sentence in caught.value.message and "\n" not in caught.value.message


def test_submodules_of_a_folder_are_taken_as_they_are_checked_out(work: Path, git: Git) -> None:
    folder = agent_of(f"repo:{work}").build.folder
    assert folder is not None and (folder.path / "lib" / "util.py").is_file()
    git(work, "commit", "-qm", "a submodule")
    shutil.rmtree(work / "lib")
    (work / "lib").mkdir()
    with pytest.raises(MlereduxError, match=r"^lib is a submodule that is not checked out\. Run"):
        agent_of(f"repo:{work}")


@pytest.mark.parametrize("below", ["deep", "deep/down"])
def test_submodules_of_submodules_are_named_if_they_are_missing(work: Path, below: str) -> None:
    declared = '[submodule "{}"]\n\tpath = {}\n\turl = https://example.org/x.git\n'
    folder, paths = work / "lib", below.split("/")
    for path in paths:
        modules = enumerate([path, "again", "."])
        (folder / ".gitmodules").write_text("".join(declared.format(number, name) for number, name in modules))
        (folder / "again").symlink_to(".")
        folder /= path
        folder.mkdir()
    with pytest.raises(MlereduxError, match=rf"^lib/{below} is a submodule that is not checked out\. Run"):
        agent_of(f"repo:{work}")
    (folder / "util.py").write_text("x = 1")
    assert agent_of(f"repo:{work}").build.folder is not None


def test_files_that_git_lfs_keeps_are_named(work: Path, repository: Path, git: Git, tmp_path: Path) -> None:
    for number in range(5):
        (work / f"weights-{number}.bin").write_text(POINTER.format(number))
    (work / "about.md").write_text("It begins with `version https://git-lfs.github.com/spec/v1`.")
    named = r"^Git LFS stores weights-0\.bin, weights-1\.bin, weights-2\.bin and 2 more, which was not fetched\. Clone"
    for _ in range(2):
        with pytest.raises(MlereduxError, match=named):
            agent_of(f"repo:{work}")
    for number in range(5):
        (work / f"weights-{number}.bin").write_bytes(b"\0" * 2000)
    agent_of(f"repo:{work}")
    (work / "mleredux-agent.toml").unlink()
    (work / "solve.py").write_text("open(HERE + '/weights-1.bin')")
    (work / "weights-1.bin").write_text(POINTER.format(1))
    agent_of(f"repo:{work / 'lib' / 'util.py'}")
    with pytest.raises(MlereduxError, match=r"^Git LFS stores weights-1\.bin, which"):
        agent_of(f"repo:{work / 'solve.py'}")
