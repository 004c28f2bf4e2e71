"""`python -m mleredux_rollout` prints the JSON schema; with files as arguments, it checks them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mleredux_rollout.documents import check_rollout
from mleredux_rollout.extras import json_schema


def main(arguments: list[str]) -> int:
    """Print the schema, or the problems of the given files; return 1 if there are any."""
    if not arguments:
        print(json.dumps(json_schema(), indent=1, ensure_ascii=False))
        return 0
    problems = [f"{name}: {problem}" for name in arguments for problem in check_rollout(Path(name))]
    print("\n".join(problems) or "valid")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
