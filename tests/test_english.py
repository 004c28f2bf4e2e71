"""The words of help texts, messages, docs and code are the field's own: the glossary of CONTRIBUTING.md, held."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = {
    r"verbs?": "command, subcommand",
    r"mend(s|ed|ing|able)?": "fix",
    r"anew": "again",
    r"makes? no sense (of|for)": "does not apply to, invalid",
    r"no longer good": "expired, invalid",
    r"at most so many": "maximum number of",
    r"pass(es|ed)? over": "ignored, skipped",
    r"hand(s|ed|ing)? (it |them |one |something )?in": "submit",
    r"(looks?|looked) at": "check, inspect, read",
    r"for good": "permanently, in production",
    r"data (are|were|have)": "data is, was, has",
    r"brought up to date": "migrated, updated",
    r"take(n|s)? up again": "resumed, retried",
    r"taken down": "recorded, captured",
    r"lets? (an|the) agents? work": "run an agent on a task",
    r"what (it|they|an agent|the agent|agents) (leaves?|left)( behind)?": "output files, artifacts",
    r"gone on with": "resumed, continued",
}
_FILES = ("*.py", "*.md", "*.toml", "*.tmpl", "*.html", "*.sh", "*.yml", "*.yaml", ".ci/*")
_QUOTED = re.compile(r"(^|/)(description\w*\.md|LICENSE|test_english\.py|CODE_OF_CONDUCT\.md)$|/golden/")


def _texts() -> list[str]:
    listed = subprocess.run(["git", "ls-files", *_FILES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if not _QUOTED.search(name)]


@pytest.mark.parametrize("phrase", GLOSSARY)
def test_the_glossary_is_kept(phrase: str) -> None:
    pattern = re.compile(rf"\b({phrase})\b", re.IGNORECASE)
    found = []
    for name in _texts():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert not found, f"say: {GLOSSARY[phrase]}\n" + "\n".join(found)
