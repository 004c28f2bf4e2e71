"""First lines of scripts: programs, options, and arguments of `env`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mleredux.errors import MlereduxError
from mleredux_agent_repo.agents import agent_of

SHOWING = """
import os, sys
print(os.environ.get("K"), os.environ.get("HOME"), os.getcwd(), sys.argv[1:], sys.flags.optimize)
"""
FIRST_LINES = {
    "bash": (
        "/bin/bash -e",
        "/usr/bin/env bash",
        "/usr/bin/env -S bash -e",
        "/usr/bin/env -S K=1 bash -e",
        "/usr/bin/env -S K=1 HOME=/x=y bash -u -e",
        "/usr/bin/env -S -u HOME bash",
        "/usr/bin/env -S -uHOME bash",
        "/usr/bin/env -S --unset=HOME K=2 bash",
        "/usr/bin/env -S -i K=2 bash",
        "/usr/bin/env -iS K=2 bash -e",
        "/usr/bin/env -S - bash",
        "/usr/bin/env --split-string=K=3 bash",
        "/usr/bin/env -SK=3 bash",
        "/usr/bin/env -S 'K=a b' bash",
        '/usr/bin/env -S K="a\\_b" bash',
        r"/usr/bin/env -S K=1\_bash\_-e",
        "/usr/bin/env -S K=${HOME}/x bash",
        "/usr/bin/env -S K=${ABSENT}x bash",
        "/usr/bin/env -S K='$HOME' bash",
        "/usr/bin/env -S -C / bash",
        "/usr/bin/env -S -- K=1 bash",
        "/usr/bin/env -S env K=1 bash",
        " \t/usr/bin/env\t-S K=1 bash \t",
        "'{folder}/my tools/bash'",
        "/usr/bin/env -S '{folder}/my tools/bash' -e",
        "/usr/bin/env -S nice -n 5 bash",
        "{folder}/tools/bash",
    ),
    "python": (
        "/usr/bin/env -S K=1 python3 -O",
        "/usr/bin/env -S -u HOME python3 -OO",
        "/usr/bin/env -S K='a b' python3",
        "/usr/bin/env -S -i K=1 python3",
    ),
}


@pytest.mark.parametrize(("language", "line"), [(name, line) for name, lines in FIRST_LINES.items() for line in lines])
def test_a_first_line_means_the_same_as_to_the_kernel(
    tmp_path: Path, mleredux_home: Path, language: str, line: str
) -> None:
    for folder in ("my tools", "tools"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bash").symlink_to("/bin/bash")
    text = SHOWING if language == "python" else 'echo "$K|$HOME|$PWD|$-|$*|$MLEREDUX_AGENT_DIR"\n'
    script = tmp_path / "solve"
    script.write_text(f"#!{line.format(folder=tmp_path) if '{folder}' in line else line}\n{text}")
    script.chmod(0o755)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": "/home/someone", "MLEREDUX_AGENT_DIR": str(tmp_path)}

    def output(*command: str) -> tuple[int, str]:
        ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stdout

    try:
        expected = output(str(script))
    except OSError:  # no such program: the kernel knows no quotation marks
        expected = (127, "")
    assert output(*agent_of(f"repo:{script}").command) == expected


def test_shell_scripts_with_a_byte_order_mark_are_one_sentence(tmp_path: Path, mleredux_home: Path) -> None:
    for name, reads in {"a.sh": False, "b": False, "c.py": True, "d": True}.items():
        program = "/usr/bin/env -S K=1 " + ("python3" if reads else "bash -e")
        (tmp_path / name).write_text(f"\ufeff#!{program}\n", encoding="utf-8")
        if reads:
            agent_of(f"repo:{tmp_path / name}")
        else:
            with pytest.raises(MlereduxError, match=rf"{name} has a byte order mark, which shells can't read"):
                agent_of(f"repo:{tmp_path / name}")


def test_windows_line_ends_of_shell_scripts_are_one_sentence(tmp_path: Path, mleredux_home: Path) -> None:
    (tmp_path / "solve.sh").write_bytes(b"#!/bin/bash\r\necho 1\r\n")
    with pytest.raises(MlereduxError, match=r"solve\.sh has Windows line endings \(CRLF\)"):
        agent_of(f"repo:{tmp_path / 'solve.sh'}")
    (tmp_path / "solve.py").write_bytes(b"print(1)\r\n")
    agent_of(f"repo:{tmp_path / 'solve.py'}")
