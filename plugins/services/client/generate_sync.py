"""Makes the synchronous client of the asynchronous one: `python generate_sync.py`; with `--check`: is it current?

`async` and `await` go, what has another name gets it, and a line `# sync: …` becomes the line itself.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "src" / "mleredux_client"
SOURCE, MADE = PACKAGE / "_async", PACKAGE / "_sync"
HEADER = "# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.\n"
RULES = [
    (r"^( *)# sync: ?", r"\1"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\basync_(sleep|each)\b", r"\1"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\ba(close|read)\b", r"\1"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"mleredux_client\._async\b", "mleredux_client._sync"),
    (r"The asynchronous client, from which .* is generated\.", "The synchronous client."),
]


def synchronous(source: str) -> str:
    """The same module without waiting."""
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return _tidied(HEADER + source)


def _tidied(source: str) -> str:
    for command in (
        ["check", "--select", "I,F401,UP028", "--fix", "--unsafe-fixes", "--exit-zero", "--quiet"],
        ["format", "--quiet"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(MADE / "module.py"), "-"]
        source = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout
    return source


def main() -> int:
    """Write what is not current, or name it; 1 where `--check` finds something."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    made = {MADE / path.name: synchronous(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.glob("*.py"))}
    old = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    left = sorted(set(MADE.glob("*.py")) - set(made))
    if check:
        print("\n".join(f"{path} is not current." for path in [*old, *left]) or "current")
        return 1 if old or left else 0
    MADE.mkdir(exist_ok=True)
    for path in old:
        path.write_text(made[path], encoding="utf-8")
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
