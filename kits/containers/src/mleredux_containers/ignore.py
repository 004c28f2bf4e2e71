"""`.dockerignore`: the files of a folder that are part of a build, according to Docker's documented rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path


def included(folder: Path, patterns: Iterable[str], always: Iterable[str] = ()) -> list[str]:
    """Return files, links and folders of a build context that no pattern excludes, relative to the context.

    Args:
        folder: The context.
        patterns: Lines of `.dockerignore`: the last match decides, `!` includes again, `**` matches any number of
            folders.
        always: Files that are included regardless of the patterns.
    """
    rules = [_rule(line) for line in patterns if line.strip("!").strip("/").strip()]
    kept, again = set(always), any(negated for negated, _ in rules)
    paths = []
    for parent, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = (Path(parent) / name).relative_to(folder).as_posix()
            left_out = False
            for negated, pattern in rules:
                if pattern.match(path):
                    left_out = not negated
            if not left_out or path in kept:
                paths.append(path)
            elif name in folders and not again and not any(wanted.startswith(f"{path}/") for wanted in kept):
                folders.remove(name)
    return sorted(paths)


def _rule(line: str) -> tuple[bool, re.Pattern[str]]:
    """Return whether a pattern includes files again, and a regular expression for a path and everything under it."""
    negated = line.startswith("!")
    pattern = os.path.normpath(line.removeprefix("!").strip().lstrip("/"))
    expression, place = "", 0
    while place < len(pattern):
        if wildcard := re.compile(r"\*\*/?").match(pattern, place):
            expression += "(?:.*/)?" if wildcard[0].endswith("/") else ".*"
            place = wildcard.end()
            continue
        character = pattern[place]
        closed = pattern.find("]", place + 1) if character == "[" else -1
        if character == "\\" and place + 1 < len(pattern):
            expression, place = expression + re.escape(pattern[place + 1]), place + 2
        elif closed > 0:
            expression, place = expression + pattern[place : closed + 1], closed + 1
        else:
            expression += {"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character))
            place += 1
    return negated, re.compile(f"{expression}(?:/.*)?$", re.DOTALL)
