"""Generate the synchronous client from the asynchronous one: `python generate_sync.py`.

`async` and `await` are removed, names are replaced by their counterparts, and a line `# sync: …` becomes the code in
the comment. The build does this (`hatch_build.py`), and so does pytest before it collects tests (`conftest.py`); git
ignores the result.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PACKAGE = Path(__file__).parent / "src" / "mleredux_client"
SOURCE, TARGET = PACKAGE / "_async", PACKAGE / "_sync"
HEADER = "# Generated from mleredux_client/_async by generate_sync.py.\n"
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
    """Return the same module without waiting."""
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return HEADER + source


def generate(target: Path = TARGET) -> None:
    """Write the modules that are not current, each as a whole, and remove those without a source."""
    target.mkdir(exist_ok=True)
    current = {path.name: synchronous(path.read_text(encoding="utf-8")) for path in SOURCE.glob("*.py")}
    for name, text in current.items():
        path = target / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            part = target / f".{name}.{os.getpid()}"
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    for path in target.glob("*.py"):
        if path.name not in current:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    generate()
