"""Getting an agent's source: which commit, from where, and what is refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux.errors import MlereduxError
from mleredux_agent_repo import sources, trees
from mleredux_agent_repo.agents import agent_of
from mleredux_agent_repo.references import Reference, parse


def got(reference: str) -> sources.Source:
    return sources.get(parse(reference))


def test_a_tag_and_a_branch_are_pinned_to_their_commits(repository: Path, git: Any) -> None:
    first, default = got(f"repo:{repository}@v1"), got(f"repo:{repository}")
    assert first.commit == default.commit == git(repository, "rev-parse", "v1")
    assert first.reference == f"repo:{repository}@{first.commit}"
    second = got(f"repo:{repository}@feature/next#agents/fast")
    assert second.commit == git(repository, "rev-parse", "feature/next")
    assert second.reference == f"repo:{repository}@{second.commit}#agents/fast"
    assert (second.folder / "solve.py").is_file() and second.folder.relative_to(second.root) == Path("agents/fast")


def test_a_pinned_reference_needs_no_repository_any_more(repository: Path) -> None:
    source = got(f"repo:{repository}@v1")
    repository.rename(repository.with_name("gone"))
    repository.mkdir()
    assert got(source.reference) == source


def test_a_branch_that_moved_gives_its_new_commit(repository: Path, tmp_path: Path, git: Any) -> None:
    before = got(f"repo:{repository}@main")
    git(tmp_path / "work", "commit", "-q", "--allow-empty", "-m", "third")
    git(tmp_path / "work", "push", "-q", str(repository), "main")
    assert got(f"repo:{repository}@main").commit == git(repository, "rev-parse", "main") != before.commit


@pytest.mark.parametrize("server", ["git_daemon", "smart_http"])
def test_real_servers_are_asked(server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    url = request.getfixturevalue(server)
    with pytest.raises(MlereduxError, match="does not protect the repository from being changed in transit"):
        got(f"repo:{url}")
    monkeypatch.setenv("MLEREDUX_AGENT_HOSTS", "127.0.0.1")
    source = got(f"repo:{url}@feature/next#agents/fast")
    assert (source.folder / "mleredux-agent.toml").is_file()
    assert got(f"repo:{url}@{source.commit}").commit == source.commit
    with pytest.raises(MlereduxError, match=r"no-such of .* can't be fetched"):
        got(f"repo:{url}@no-such")


def test_a_folder_is_copied_and_named_by_its_content(write_agent: Any) -> None:
    folder = write_agent()
    first = got(f"repo:{folder}")
    assert first.commit.startswith("copy-") and got(f"repo:{folder}") == first == got(first.reference)
    (folder / "solve.py").write_text("print('changed')\n")
    second = got(f"repo:{folder}")
    assert second.commit != first.commit and "changed" not in (first.folder / "solve.py").read_text()


@pytest.mark.parametrize("state", ["prepared", "downloaded", "moved here"])
@pytest.mark.parametrize("kind", ["folder", "script"])
@pytest.mark.attack
def test_data_and_runs_beside_an_agent_are_not_in_it(
    kind: str, state: str, write_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent is written where its author works: often, that is where the answers are."""
    folder = write_agent(**{"solve.py": "print(open('work/data/wine/train.csv'), 'answers.csv', 'data', 'again')\n"})
    work = folder / "work"
    run = mleredux.run("wine", "dummy", data_dir=work / "data", runs_dir=work / "runs", sandbox="process")
    answers = next((work / "data").glob("*/prepared/private/answers.csv")).read_bytes()
    (work / "again").symlink_to("data/wine/prepared")
    (work / "deep").mkdir()
    (work / "data" / "wine").replace(work / "deep" / "renamed")
    (data,) = (work / "deep").iterdir()
    if state == "downloaded":
        shutil.copy(data / "prepared" / "private" / "answers.csv", data)
        shutil.rmtree(data / "prepared")
    if state == "moved here":
        (data / ".raw-lock").unlink()
    source = got(f"repo:{folder if kind == 'folder' else folder / 'solve.py'}")
    given = {path.read_bytes() for path in source.root.rglob("*") if path.is_file()}
    assert (folder / "solve.py").read_bytes() in given
    assert answers not in given and (run.output_dir / "submission.csv").read_bytes() not in given


@pytest.mark.parametrize("runs", [".", "results"])
def test_runs_in_an_agents_folder_do_not_change_it(
    runs: str, write_agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_agent(**{"solve.py": ""})
    first = got(f"repo:{folder}")
    for _ in range(2):
        mleredux.run("wine", "dummy", data_dir=folder / "data", runs_dir=folder / runs, sandbox="process")
    assert got(f"repo:{folder}").commit == first.commit


def test_a_work_tree_is_its_commit_until_it_is_changed(repository: Path, tmp_path: Path, git: Any) -> None:
    work = tmp_path / "work"
    assert got(f"repo:{work}").commit == git(work, "rev-parse", "HEAD")
    (work / "solve.py").write_text("print('changed')\n")
    assert got(f"repo:{work}").commit.startswith("copy-")


@pytest.mark.parametrize(
    ("text", "place", "ref", "subdir"),
    [
        ("repo:https://github.com/a/b.git@v1#c/d", "https://github.com/a/b.git", "v1", "c/d"),
        ("repo:https://github.com/a/b@feature/x", "https://github.com/a/b", "feature/x", "."),
        ("repo:ssh://git@github.com/a/b.git", "ssh://git@github.com/a/b.git", None, "."),
        ("repo:git@github.com:a/b.git@main", "git@github.com:a/b.git", "main", "."),
    ],
)
def test_references_are_read_as_people_write_them(text: str, place: str, ref: str | None, subdir: str) -> None:
    found = parse(text)
    assert isinstance(found, Reference)
    assert (found.place, found.ref, str(found.subdir)) == (place, ref, subdir)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("repo:", "has no repository"),
        ("repo:https://evil.example/a.git", "may not be fetched from evil.example"),
        ("repo:git@evil.example:a.git", "may not be fetched from evil.example"),
        ("repo:ext::sh -c id", "is not a folder"),
        ("repo:https://me:token@github.com/a/b.git", "contains credentials"),
        ("repo:ftp://github.com/a/b.git", "can't be fetched with ftp"),
        ("repo:https://github.com/a/b.git@--upload-pack=id", "is not a branch, tag or commit"),
        ("repo:https://github.com/a/b.git#../../etc", "is outside the repository"),
        ("repo:/no/such/folder", "is not a folder"),
    ],
)
@pytest.mark.attack
def test_bad_references_are_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(MlereduxError, match=sentence):
        parse(text)


@pytest.mark.attack
def test_folders_may_be_limited(write_agent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_agent()
    monkeypatch.setenv("MLEREDUX_AGENT_PATHS", str(tmp_path / "allowed"))
    with pytest.raises(MlereduxError, match="may not be fetched from"):
        got(f"repo:{folder}")
    monkeypatch.setenv("MLEREDUX_AGENT_PATHS", os.pathsep.join([str(tmp_path / "allowed"), str(folder.parent)]))
    assert got(f"repo:{folder}").folder.is_dir()


@pytest.mark.attack
def test_links_that_lead_out_and_too_much_are_refused(
    write_agent: Any, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Any, own_cache: Path
) -> None:
    folder = write_agent()
    (folder / "passwords").symlink_to("/etc/passwd")
    with pytest.raises(MlereduxError, match=r"passwords in .* is a link that points outside"):
        got(f"repo:{folder}")
    (tmp_path / "work" / "out").symlink_to("/etc/passwd")
    git(tmp_path / "work", "add", "-A")
    git(tmp_path / "work", "commit", "-qm", "link")
    with pytest.raises(MlereduxError, match=r"out in .* is a link that points outside"):
        got(f"repo:{tmp_path / 'work'}@main")
    monkeypatch.setattr(trees, "MAX_FILES", 2)
    with pytest.raises(MlereduxError, match="is too large for an agent"):
        got(f"repo:{repository}@v1")
    assert not [path for path in own_cache.rglob("*.git") if path.is_dir()], "nothing half is left"


@pytest.mark.attack
def test_hooks_and_filters_of_a_repository_run_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Any
) -> None:
    work, mark = tmp_path / "work", tmp_path / "ran"
    (work / ".gitattributes").write_text("*.py filter=evil\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "filter")
    config = tmp_path / "gitconfig"
    config.write_text(f'[filter "evil"]\n\tsmudge = touch {mark} && cat\n\tclean = cat\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    (work / ".git" / "hooks" / "post-checkout").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (work / ".git" / "hooks" / "post-checkout").chmod(0o755)
    assert (got(f"repo:{work}@main").folder / "solve.py").is_file()
    assert not mark.exists()


def test_an_agent_is_what_its_manifest_says(repository: Path, git: Any) -> None:
    agent = agent_of(f"repo:{repository}@v1")
    assert (agent.id, agent.network, agent.isolated) == ("sampler", "none", True)
    assert (agent.limits.time_limit, agent.limits.memory_mb, agent.options) == (120, 512, {"level": 1})
    assert agent.reference == f"repo:{repository}@{git(repository, 'rev-parse', 'v1')}"
    assert git(repository, "rev-parse", "v1")[:12] in agent.version
    assert agent.smoke is not None and (agent.smoke.task, agent.smoke.time_limit) == ("wine", 60)
