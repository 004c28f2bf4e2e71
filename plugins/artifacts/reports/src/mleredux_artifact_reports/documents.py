"""Plugins' texts about the run as HTML: Markdown, diffs and code; nothing in them is passed on as raw markup."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup
from mleredux.plugin.artifact import Artifact, Run

from mleredux_artifact_reports.files import excerpt, link_to

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

FEEDBACK = "feedback.md"
"""The artifact that a task's plugin writes to explain a grade; it is shown directly below the score."""
_BYTES = 200_000


@dataclass(frozen=True)
class Document:
    """A text artifact with its HTML; `left_out` states whether its end is missing."""

    anchor: str
    title: str
    link: str
    html: Markup
    is_code: bool
    left_out: bool


def documents_of(run: Run, artifacts: Iterable[Artifact]) -> list[Document]:
    """Return the Markdown documents and diffs that plugins wrote, feedback first."""
    documents: list[Document] = []
    for artifact in artifacts:
        if artifact.producer in ("agent", "mleredux") or artifact.media_type not in ("text/markdown", "text/x-diff"):
            continue
        part = excerpt(run.path, artifact.path, head=_BYTES)
        if part is None:
            continue
        text, is_code = part.head.decode(errors="replace"), artifact.media_type == "text/x-diff"
        html = highlighted(text, "diff") if is_code else markdown(text)
        title, anchor = artifact.title or artifact.path, f"document-{len(documents) + 1}"
        documents.append(Document(anchor, title, link_to(artifact.path), html, is_code, bool(part.left_out)))
    return sorted(documents, key=lambda document: document.link != link_to(FEEDBACK))


def highlighted(text: str, language: str) -> Markup:
    """Return escaped code with highlighting in `span` elements; code in an unknown language is only escaped."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return Markup(highlight(text, lexer, HtmlFormatter(nowrap=True)))  # Pygments escapes


def markdown(text: str) -> Markup:
    """Render Markdown without raw HTML, images and links; the first title is omitted, others start at `h3`."""
    reader = _reader()
    tokens = reader.parse(text)
    if tokens and tokens[0].type == "heading_open":
        tokens = tokens[3:]
    _lower_headings(tokens)
    html = reader.renderer.render(tokens, reader.options, {})
    return Markup(html.replace("<pre>", '<pre tabindex="0">'))  # raw HTML is off


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = (
        MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink", "reference"])
    )
    reader.core.ruler.push("no_styles", _without_styles)
    return reader


def _without_styles(state: StateCore) -> None:
    """Remove the alignment of cells, because the page's policy forbids style attributes."""
    for token in state.tokens:
        token.attrs.pop("style", None)


def _lower_headings(tokens: list[Token]) -> None:
    level = 2
    for token in tokens:
        if token.type == "heading_open":
            level = min(level + 1, int(token.tag[1]) + 1)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(level, 6)}"
