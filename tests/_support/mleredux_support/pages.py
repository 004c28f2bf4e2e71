"""Run the shell commands of Markdown pages, so that documented commands are known to work.

A block in the language `sh` is run unless its fence has `no-run: REASON`; with `in=NAME`, it runs in a shell that finds
the programs in the folder of the variable `BIN_NAME` first. A block with `file=PATH` on its fence is written to that
path. Each line of a block in the language `text` must occur in the output of the page's commands.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```([\w-]*)[ ]*([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(\s+|\$ )(\S*/)?(mleredux|pip install|uv (pip|run|sync)|python3? -m)\s")


class Block(NamedTuple):
    """A fenced block of a page: its language, the rest of the line of its fence, and its content."""

    language: str
    info: str
    content: str

    @property
    def runs(self) -> bool:
        """Whether it is a shell block to run."""
        return self.language == "sh" and (not self.info or self.environment is not None)

    @property
    def environment(self) -> str | None:
        """The name of the environment whose programs it uses."""
        return self.info.removeprefix("in=") if self.info.startswith("in=") else None

    @property
    def file(self) -> str | None:
        """The path that it is written to, if it is a file."""
        return self.info.removeprefix("file=") if self.info.startswith("file=") else None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    for match in _FENCE.finditer(page.read_text(encoding="utf-8")):
        yield Block(match[1], match[2].strip(), match[3])


def unchecked_commands(page: Path) -> list[str]:
    """Return lines that look like commands but are not in an `sh` block, so that nothing runs them."""
    text = page.read_text(encoding="utf-8")
    rest = _FENCE.sub(lambda match: match[3] if match[1] in ("", "console", "bash", "shell") else "", text)
    return [line.strip() for line in rest.splitlines() if _COMMAND.match(line)]


def script(page: Path) -> tuple[str, list[str]]:
    """Return the page as one shell script, and the lines that it must print."""
    # A server left behind by a failing page would keep its output open.
    lines, expected = ["set -eux", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"], []
    for block in blocks(page):
        if block.file:
            lines.append(
                f"mkdir -p \"$(dirname '{block.file}')\"\n"
                f"cat > '{block.file}' <<'END_OF_FILE'\n{block.content}END_OF_FILE"
            )
        elif block.environment:
            lines.append(f'(\nPATH="$BIN_{block.environment.upper()}:$PATH"\n{block.content})')
        elif block.runs:
            lines.append(block.content)
        elif block.language == "text":
            expected += block.content.splitlines()
    return "\n".join(lines), expected


def run_page(page: Path, folder: Path, variables: Mapping[str, str]) -> None:
    """Run the commands of a page in an empty folder, in order, in one shell.

    Raises:
        AssertionError: A command fails, or an expected line is not printed.
    """
    commands, expected = script(page)
    ended = subprocess.run(
        ["bash", "-c", commands],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=dict(variables),
    )
    assert ended.returncode == 0, f"{page}: {ended.stdout[-4000:]}"
    printed = {" ".join(line.split()) for line in ended.stdout.splitlines()}
    missing = [line for line in expected if " ".join(line.split()) not in printed]
    assert not missing, f"{page}: not printed: {missing}"
