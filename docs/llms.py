"""Generate `llms.txt`: the pages of the site, with one sentence each, for language models."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
SITE = "https://mleredux.github.io/mleredux/"
_TREE = re.compile(r"```\{toctree\}\n((?::[^\n]*\n)*)\n?(.*?)```", re.DOTALL)


def sections() -> dict[str, list[Path]]:
    """Return the pages of the site in menu order, by caption on the front page."""
    by_caption: dict[str, list[Path]] = {}
    for options, names in _TREE.findall((DOCS / "index.md").read_text(encoding="utf-8")):
        caption = re.search(r":caption: (.+)", options)
        by_caption[caption[1] if caption else "Pages"] = [page for name in names.split() for page in _with_inner(name)]
    return by_caption


def _with_inner(name: str, depth: int = 0) -> list[Path]:
    """Return a page and the pages in its menus."""
    page = DOCS / f"{name}.md"
    if not page.exists() or "packages/" in name or name in ("changelog", "contributing"):  # created with the site
        return []
    inner = _TREE.findall(page.read_text(encoding="utf-8"))
    names = [each for _, names in inner for each in names.split()]
    below = [inner for each in names for inner in _with_inner(str(page.relative_to(DOCS).parent / each), depth + 1)]
    return [page, *below]


def summary(page: Path) -> tuple[str, str]:
    """Return the title of a page and its first sentence."""
    text = re.sub(r"<!--.*?-->|^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    assert title is not None, f"{page} has no title"
    prose = [part for part in text[title.end() :].split("\n\n") if re.match(r"\s*[A-Za-z`\[*]", part)]
    plain = (
        re.sub(r"\[([^]]+)\]\([^)]*\)|[*`]", lambda match: match[1] or "", " ".join(prose[0].split())) if prose else ""
    )
    return title[1].replace("`", ""), re.split(r"(?<=[.?]) ", plain)[0].rstrip(":")


def text() -> str:
    """Return the content of `llms.txt`."""
    _, first = summary(DOCS / "index.md")
    lines = ["# mleredux", "", f"> {first}", ""]
    for caption, pages in sections().items():
        lines += [f"## {caption}", ""]
        for page in pages:
            title, sentence = summary(page)
            address = SITE + page.relative_to(DOCS).with_suffix(".html").as_posix()
            lines.append(f"- [{title}]({address}): {sentence}" if sentence else f"- [{title}]({address})")
        lines.append("")
    return "\n".join(lines)
