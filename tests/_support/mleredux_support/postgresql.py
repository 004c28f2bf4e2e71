"""A PostgreSQL server of the tests' own, from the binaries that Debian's packages install."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from mleredux_support.ports import free_port

_USER = "service"
_SETTINGS = {
    # A crash of the server, other than one of the machine, loses nothing by these; without `synchronous_commit` it
    # would lose what was committed in its last half second.
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
}


def find_binaries() -> Path | None:
    """Folder of `initdb` and `postgres`; the newest of those installed, None where there is none."""
    found = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    if found:
        return max(found, key=lambda folder: [int(part) for part in re.findall(r"\d+", folder.parent.name)])
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class PostgresServer:
    """A cluster in a folder of its own, on a port of the loopback; used as a context manager.

    PostgreSQL refuses to run as root: there it runs as `postgres`, or as `nobody`.

    Args:
        binaries: Folder of `initdb` and `postgres`.
        parent: Where its folder is created; None: in the folder for temporary files.

    Attributes:
        password: Of the user in `url`; nowhere else.
    """

    def __init__(self, binaries: Path, parent: Path | None = None) -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="mleredux-postgresql-", dir=parent))
        self._as: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self.password = "pg-" + secrets.token_hex(12)
        self.port = free_port()
        if os.geteuid() == 0:
            owner = _unprivileged()
            self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)

    def __enter__(self) -> PostgresServer:
        password_file = self._folder / "password"
        password_file.write_text(self.password, encoding="utf-8")
        command: list[str | Path] = [
            self._binaries / "initdb",
            "-D",
            self._data,
            "-U",
            _USER,
            "--pwfile",
            password_file,
            "--no-sync",
        ]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        try:
            subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._as)
            return self.start()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def __exit__(self, *_exception: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """URL of a database, with the password."""
        return f"postgresql://{_USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """URL of an empty database."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str) -> None:
        """One statement, outside any transaction, in the database `postgres`."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True, connect_timeout=5) as connection:
            connection.execute(statement.encode())

    def start(self, seconds: float = 60) -> PostgresServer:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: It does not; with its log.
        """
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-k", self._folder, "-p", str(self.port), *settings],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **self._as,
            )
        deadline = time.monotonic() + seconds
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("PostgreSQL did not start:\n" + (self._folder / "log").read_text(errors="replace"))
            time.sleep(0.05)
        return self

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: clients are cut off (SIGINT), or it crashes (SIGQUIT); nothing where it does not run."""
        if self._process is None:
            return
        self._process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self._process.kill()
        self._process.wait()
        self._process = None

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _answers(self) -> bool:
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("There is neither a user postgres nor a user nobody.")
