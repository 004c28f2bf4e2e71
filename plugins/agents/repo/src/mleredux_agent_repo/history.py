"""List the commits between two commits of a repository, without running git in another user's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mleredux.errors import MlereduxError

from mleredux_agent_repo import git
from mleredux_agent_repo.local import find_local
from mleredux_agent_repo.references import checked, parse
from mleredux_agent_repo.sources import scratch_of

MOST_COMMITS = 10_000


def history(reference: str, good: str, bad: str) -> list[str]:
    """Return references to an agent's commits from `good` to `bad`, inclusive, oldest first, along first parents.

    Raises:
        MlereduxError: A commit can't be found, or `good` is not an ancestor of `bad`.
    """
    wanted = replace(parse(reference), ref=None)
    good, bad = checked(good) or "HEAD", checked(bad) or "HEAD"
    local = find_local(wanted.path) if wanted.path is not None else None
    if wanted.path is not None and local is None:
        raise MlereduxError(f"{wanted.path} is not a git repository.", hint="Use a repository with a history.")
    with scratch_of(wanted.place) as scratch:
        if local is not None:
            store = local.stage(scratch / "origin.git")
            first, last = (_commit(store, name, local.commit(name), wanted.place) for name in (good, bad))
        else:
            store = git.new_store(scratch / "store.git")
            first, last = (
                git.fetch(store, wanted.place, name, shown=wanted.place, history=True) for name in (good, bad)
            )
        if git.run(["merge-base", first, last], store).decode().strip() != first:
            raise MlereduxError(
                f"{good} is not an ancestor of {bad} in {wanted.place}.", hint="Specify the older commit first."
            )
        listed = ["rev-list", "--first-parent", f"--max-count={MOST_COMMITS}", f"{first}..{last}"]
        between = git.run(listed, store).decode().split()
    return [wanted.pinned(commit) for commit in (first, *reversed(between))]


def _commit(store: Path, name: str, known: str | None, shown: str) -> str:
    commit = git.run(["rev-parse", "--quiet", "--verify", f"{known or name}^{{commit}}"], store).decode().strip()
    if not commit:
        raise MlereduxError(f"There is no commit {name} in {shown}.", hint="See `git log` in the repository.")
    return commit
