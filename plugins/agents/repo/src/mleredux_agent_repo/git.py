"""Run git with our own configuration and a cleared environment, never inside another user's folder."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import GIT_TOKEN, provided_secrets
from mleredux.plugin.files import MAX_HOPS, host_addresses, redirected

from mleredux_agent_repo.references import HOSTS_VARIABLE, check_url, unnamed_host
from mleredux_agent_repo.trees import MAX_BYTES

FETCH_SECONDS = 300.0
MEMORY_BYTES = 4 << 30
"""Maximum address space of git and of each process that it starts."""
_DISCOVERY = "/info/refs?service=git-upload-pack"
_LOCATION = re.compile(r"<= Recv header: location: (\S+)", re.IGNORECASE)
_PASSED = (
    *("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *(f"{name}_proxy" for name in ("http", "https", "all", "no")),
    *(f"{name}_PROXY" for name in ("HTTP", "HTTPS", "ALL", "NO")),
)
_REMOTE = ("XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "GIT_SSL_CAINFO", "GIT_SSL_NO_VERIFY", "GIT_CONFIG_GLOBAL")
"""Additional variables for fetching from a server: the caller's own credentials and certificates."""
_OPTIONS = (
    *("protocol.allow=never", "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null"),
    *("core.excludesFile=/dev/null", "submodule.recurse=false", "http.followRedirects=false", "gc.auto=0"),
    *("maintenance.auto=false", "advice.detachedHead=false", "core.symlinks=true", "core.protectHFS=true"),
    *("core.protectNTFS=true", "fetch.fsckObjects=false", "transfer.bundleURI=false"),
)
_RAW = "* -text !eol -ident -filter -diff -merge !working-tree-encoding !export-subst !export-ignore\n"
"""Attributes that no file in a tree can override: files are written with exactly the bytes of their blobs."""


def new_store(path: Path, *, sha256: bool = False) -> Path:
    """Create an empty bare repository that is not affected by templates, configuration or attributes from elsewhere."""
    _run(["init", "--quiet", "--bare", "--template=", f"--object-format={'sha256' if sha256 else 'sha1'}", str(path)])
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text(_RAW, encoding="ascii")
    return path


def fetch(store: Path, origin: str, wanted: str, *, shown: str, history: bool = False) -> str:
    """Fetch one commit, either without its history or with the hashes of all its ancestors; return its hash.

    Args:
        store: A repository created by `new_store`.
        origin: A URL, or the path of another such store.
        wanted: A branch, tag or commit.
        shown: The name of the origin in errors.
        history: Whether to fetch all earlier commits, without their files.

    Raises:
        MlereduxError: The commit can't be fetched, takes too long or is too large.
    """
    local = origin.startswith("/")
    allowed = ("file",) if local else ("https", "http", "ssh", "git")
    arguments = [*(part for name in allowed for part in ("-c", f"protocol.{name}.allow=always"))]
    depth = "--filter=tree:0" if history else "--depth=1"
    arguments += ["fetch", "--quiet", depth, "--no-tags", "--no-recurse-submodules"]
    failure = f"{wanted} of {shown} can't be fetched"
    if local:
        address = f"file://{quote(origin, errors='surrogateescape')}"
        _run([*arguments, "--", address, wanted], store, failure=failure)
    else:
        _fetch_from_server(arguments, store, origin, wanted, failure)
    return run(["rev-parse", "FETCH_HEAD^{commit}"], store).decode().strip()


def _fetch_from_server(arguments: list[str], store: Path, origin: str, wanted: str, failure: str) -> None:
    """Fetch, and follow redirects of the first request to other allowed repositories.

    git's own redirects are disabled because it would check neither hosts nor schemes.
    """
    trace = store / "redirects"
    variables = _credentials(origin) | {"GIT_TRACE_CURL": str(trace), "GIT_TRACE_CURL_NO_DATA": "1"}
    url, pins = origin, _first_pins(origin, failure)
    for _ in range(MAX_HOPS):
        trace.unlink(missing_ok=True)
        try:
            _run([*pins, *arguments, "--", url, wanted], store, remote=True, credentials=variables, failure=failure)
        except MlereduxError:
            locations = _LOCATION.findall(trace.read_text("utf-8", "replace")) if trace.exists() else []
            if not locations:
                raise
            url, pins = _next_hop(url, locations[-1], failure)
        else:
            return
        finally:
            trace.unlink(missing_ok=True)
    raise MlereduxError(f"{failure}: its server redirects too often.", hint="Check the address.")


def _next_hop(url: str, location: str, failure: str) -> tuple[str, list[str]]:
    """Return the target of a redirect, and options that make git connect only to the checked addresses.

    Raises:
        MlereduxError: The target of the redirect is not allowed.
    """
    try:
        target, addresses = redirected(url.rstrip("/") + _DISCOVERY, location)
        repository = target.removesuffix(_DISCOVERY)
        if repository == target:
            raise PermissionError("it is not a repository")
        check_url(repository)
    except (PermissionError, MlereduxError) as error:
        reason = f"its server redirects to {location[:300]!a}: {str(error).rstrip('.')}"
        raise MlereduxError(f"{failure}: {reason}.", hint="Use the address of the repository itself.") from None
    return repository, _pins(repository, addresses)


def _first_pins(url: str, failure: str) -> list[str]:
    """Return options that make git connect only to public addresses of a host that is not explicitly allowed.

    Raises:
        MlereduxError: The host has addresses that are not public, or no address.
    """
    host = unnamed_host(url)
    if host is None:
        return []
    try:
        return _pins(url, host_addresses(host, 443))
    except PermissionError as error:
        hint = f"The administrator of this machine can add {host} to {HOSTS_VARIABLE}; `*` allows all public hosts."
        raise MlereduxError(f"{failure}: {error}.", hint=hint) from None


def _pins(url: str, addresses: tuple[str, ...]) -> list[str]:
    if not addresses or "://" not in url:
        return []
    parts = urlsplit(url)
    return ["-c", f"http.curloptResolve={parts.hostname}:{parts.port or 443}:{','.join(addresses)}"]


def run(arguments: list[str], store: Path, *, tree: Path | None = None, stdin: bytes = b"") -> bytes:
    """Run a git command on one of this cache's stores; return its output. Exit code 1 is not an error.

    Args:
        tree: A work tree that we wrote.
        stdin: Standard input.
    """
    return _run(arguments, store, tree=tree, stdin=stdin, ok=(0, 1))


def _run(
    arguments: list[str],
    store: Path | None = None,
    *,
    tree: Path | None = None,
    stdin: bytes = b"",
    ok: tuple[int, ...] = (0,),
    remote: bool = False,
    credentials: Mapping[str, str] | None = None,
    failure: str = "git failed",
) -> bytes:
    environment = {name: os.environ[name] for name in (*_PASSED, *(_REMOTE if remote else ())) if name in os.environ}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_NO_LAZY_FETCH": "1"}
    if remote:
        environment |= {"GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")}
    else:
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": "/"}
    environment |= credentials or {}
    where = [*([f"--git-dir={store}"] if store else []), *([f"--work-tree={tree}"] if tree else [])]
    options = [part for option in _OPTIONS for part in ("-c", option)]
    if (program := shutil.which("git")) is None:
        raise MlereduxError("git is not installed.", hint="Install it to build agents from repositories.")
    # Programs of git hold a server's list of branches in memory, however long it is.
    limited = ["sh", "-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', str(MEMORY_BYTES >> 10)]
    process = subprocess.Popen(
        [*(limited if sys.platform == "linux" else []), program, *options, *where, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=tree or store or "/",
        start_new_session=True,
    )
    end, sent = time.monotonic() + FETCH_SECONDS, stdin
    while True:
        try:
            out, err = process.communicate(sent or None, timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            sent = b""  # `communicate` continues with its first input
            problem = None
            if time.monotonic() > end:
                problem = f"took longer than {FETCH_SECONDS:.0f} seconds"
            elif store is not None and _size(store) > MAX_BYTES:
                problem = f"is larger than {MAX_BYTES >> 20} MB"
            if problem:
                process.kill()
                process.communicate()
                raise MlereduxError(f"{failure}: it {problem}.", hint="Use a smaller repository.") from None
    if process.returncode in ok:
        return out
    lines = err.decode("utf-8", "replace").strip().splitlines() or ["git printed no reason"]
    raise MlereduxError(
        f"{failure}: {lines[-1].removeprefix('fatal: ')}", hint="Check the address, and the ref after `@`."
    )


def _credentials(origin: str) -> dict[str, str]:
    """Return variables that make git send a secret, provided by a user of the service, and only to this host."""
    parts, token = urlsplit(origin), provided_secrets().get(GIT_TOKEN)
    if token is None or parts.scheme != "https":
        return {}
    pair = token if ":" in token else f"x-access-token:{token}"
    header = f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}"
    key = f"http.https://{parts.netloc}/.extraHeader"
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": header}


def _size(folder: Path) -> int:
    total = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except FileNotFoundError:
                continue  # git renames its files when they are complete
    return total
