"""`python -m mleredux_server.work.validation SCHEMA FILE`: whether a large file is well-formed, as JSON."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_MEMORY = 4 << 30
_SECONDS = 120


def main(schema: str, path: str) -> None:
    """Check, and print the verdict."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    from mleredux.plugin.host import read_schema, validate

    sys.stdout.write(validate(read_schema(Path(schema)), Path(path)).model_dump_json())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
