"""What looks like a secret is not sent: options with such a name, keys of known forms, passwords in addresses."""

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
    """Whether what is called so should not be shown: `api_key`, `hfToken`, `db.password`; not `tokenizer`."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    return bool(_NAMES.search(words))


def masked(name: str, value: Any) -> Any:
    """A value with its secrets replaced, by its name and by its look. Numbers are no secrets: `max_tokens`."""
    if isinstance(value, dict):
        return {str(key): masked(f"{name}.{key}", inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(name, inner) for inner in value]
    if isinstance(value, str) and value:
        return MASK if looks_secret(name) else masked_text(value)
    return value


def masked_text(text: str) -> str:
    """A text without keys of known forms and without the user and password of addresses."""
    return _KEYS.sub(MASK, _ADDRESS.sub(f"{MASK}@", text))
