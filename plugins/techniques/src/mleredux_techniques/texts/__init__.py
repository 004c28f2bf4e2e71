"""Texts for readers and agents, as Jinja templates next to this module."""

from __future__ import annotations

from typing import Any

import jinja2


def rendered(template: str, **known: Any) -> str:
    """Return the text of a template in this folder."""
    loader = jinja2.PackageLoader("mleredux_techniques", "texts")
    options: dict[str, Any] = {"undefined": jinja2.StrictUndefined, "keep_trailing_newline": True}
    return jinja2.Environment(loader=loader, trim_blocks=True, **options).get_template(template).render(known)
