"""Masking of secrets: options named like secrets, keys of known formats, passwords in URLs."""

from __future__ import annotations

import re
from typing import Any

MASK = "*****"
_NAMES = re.compile(
    r"(^|_)(token|secret|password|passwd|credential|auth|authorization|bearer)s?(_|$)|(^|_)(api|access|private)?_?keys?$"
)
_KEYS = re.compile(r"\b(sk-|sk_|pk_|gh[opsu]_|github_pat_|glpat-|hf_|mlr_|xox[abp]-|AKIA|eyJ)[A-Za-z0-9_.-]{12,}")
_ADDRESS = re.compile(r"(?<=://)[^/\s@]+@")


def looks_secret(name: str) -> bool:
    """Return whether a name denotes a secret, such as `api_key`, `hfToken` or `db.password`, but not `tokenizer`."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    return bool(_NAMES.search(words))


def masked(name: str, value: Any) -> Any:
    """Return a value with secrets masked, by its name and by its format. Numbers such as `max_tokens` are not
    masked."""
    if isinstance(value, dict):
        return {str(key): masked(f"{name}.{key}", inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(name, inner) for inner in value]
    if isinstance(value, str) and value:
        return MASK if looks_secret(name) else masked_text(value)
    return value


def masked_text(text: str) -> str:
    """Return text without keys of known formats and without the user and password of URLs."""
    return _KEYS.sub(MASK, _ADDRESS.sub(f"{MASK}@", text))
