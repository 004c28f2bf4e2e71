"""Names of people: participants who work on tasks, and students."""

from __future__ import annotations

import re

PERSON = re.compile(r"[^\W_][\w.@-]{0,63}")
"""The regular expression that a whole name must match."""
PERSON_RULE = "Use at most 64 letters, digits, `.`, `_`, `@` and `-`, without spaces."
"""The rule for names, as shown to users."""
