"""Fetch submodules of a repository under the same rules as the repository itself; errors name the submodule."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from urllib.parse import urlsplit

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import GIT_TOKEN, provided_secrets

from mleredux_agent_repo import git, trees
from mleredux_agent_repo.references import DEFAULT_HOSTS, SCHEME, named_hosts, parse

_FILE = ".gitmodules"
_DEEPEST = 4
_URL = re.compile(r"(https|http|ssh|git)://(git@)?[^@#]*|[\w.-]+@[\w.-]+:[^/@#][^@#]*")


def add_submodules(store: Path, commit: str, tree: Path, origin: str | None, scratch: Path, depth: int = 0) -> None:
    """Write the submodules of a commit into its tree.

    Args:
        origin: The URL of the repository; None for one on this machine.
        scratch: A folder for their objects.

    Raises:
        MlereduxError: A submodule has no URL, its URL is not allowed, or fetching failed.
    """
    rows = [row.partition(b"\t") for row in git.run(["ls-tree", "-r", "-z", commit], store).split(b"\0")]
    modules = {path.decode("utf-8", "replace"): head.split()[2].decode() for head, _, path in rows if b"commit" in head}
    addresses = _addresses(tree, store) if modules else {}
    for number, (path, wanted) in enumerate(modules.items()):
        place, address = tree / path, addresses.get(path, "")
        if depth == _DEEPEST or place.resolve() != tree.resolve() / path or not place.is_dir() or any(place.iterdir()):
            raise _refused(path, "it is nested too deeply, or its path is a link or has files")
        url = _checked(path, address, origin)
        own = git.new_store(scratch / f"module-{depth}-{number}.git", sha256=len(wanted) == 64)
        git.fetch(own, url, wanted, shown=f"{url}, the submodule {path}")
        trees.check_listed(git.run(["ls-tree", "-r", "-l", "-z", wanted], own), url)
        git.run(["checkout", "--quiet", "--force", wanted], own, tree=place)
        add_submodules(own, wanted, place, url, scratch / f"in-{depth}-{number}", depth + 1)


def refuse_missing(folder: Path, tree: Path, store: Path, prefix: str = "") -> None:
    """Refuse a user's folder with submodules, or submodules of these, that are not checked out and have no `.git`.

    Args:
        tree: A copy of the folder.
        prefix: The path of the submodule that is inspected, with a slash at its end; empty for the folder.

    Raises:
        MlereduxError: A submodule is missing.
    """
    for path in (f"{prefix}{own}" for own in _addresses(tree / prefix, store)):
        if not (folder / path).is_dir() or not any((folder / path).iterdir()):
            raise MlereduxError(
                f"{path} is a submodule that is not checked out.", hint="Run `git submodule update --init --recursive`."
            )
        if (tree / prefix).resolve() != (tree / path).resolve() == tree.resolve() / path:  # no link, no endless way
            refuse_missing(folder, tree, store, f"{path}/")


def _addresses(tree: Path, store: Path) -> dict[str, str]:
    """Return the URLs of submodules by path, as declared by the repository."""
    place = tree / _FILE
    if place.is_symlink() or not place.is_file() or place.stat().st_size > 1 << 20:
        return {}
    listed = git.run(["config", "--no-includes", "--file", str(place), "--null", "--list"], store)
    fields = dict(item.partition("\n")[::2] for item in listed.decode("utf-8", "replace").split("\0"))
    paths = {name.removesuffix(".path"): path for name, path in fields.items() if name.endswith(".path")}
    return {path: fields.get(f"{name}.url", "") for name, path in paths.items() if not {"..", ""} & {*path.split("/")}}


def _checked(path: str, address: str, origin: str | None) -> str:
    """Return the URL of a submodule if it is allowed."""
    if address.startswith(("./", "../")) and origin is not None and "://" in origin:
        parts = urlsplit(origin)
        address = parts._replace(path=posixpath.normpath(posixpath.join(parts.path, address))).geturl()
    if not _URL.fullmatch(address):  # such paths are not accessed at all
        raise _refused(path, f"its address {address[:200]!r} is not a URL of a server")
    try:
        parse(f"{SCHEME}{address}")
    except MlereduxError as error:
        raise _refused(path, error.message.rstrip(".")) from None
    host, own = _host(address), _host(origin or "")
    if host != own and (provided_secrets().get(GIT_TOKEN) or host not in (*named_hosts(), *DEFAULT_HOSTS)):
        raise _refused(path, f"its host {host} differs from the repository's")
    return address


def _host(url: str) -> str | None:
    """Return the host of a URL, or of `user@host:path`."""
    return urlsplit(url).hostname if "://" in url else url.partition("@")[2].partition(":")[0]


def _refused(path: str, why: str) -> MlereduxError:
    return MlereduxError(
        f"The submodule {path} can't be fetched: {why}.",
        hint="Clone the repository with `--recurse-submodules`, and specify its folder.",
    )
