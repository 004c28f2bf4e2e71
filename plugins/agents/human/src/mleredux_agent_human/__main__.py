"""Inside the sandbox: the session, its terminals, and the workspace's commands `submit [FILE]`, `finish`, `clock`."""

from __future__ import annotations

import sys
from pathlib import Path

from mleredux_agentkit import Task
from mleredux_agentkit.wire import NoSession, request


def main(words: list[str]) -> int:
    """Serve the session, send a request to it, or attach this terminal to its shell; return the exit code."""
    task = Task()
    if not words:
        from mleredux_agent_human.session import Session

        return Session(task, "human").serve()
    do, *files = words
    if words == ["attach"]:
        from mleredux_agent_human.terminal import attach

        attach(task.output_dir)
        return 0
    if do not in ("submit", "finish", "clock") or len(files) > (do == "submit"):
        print("Usage: submit [FILE] | finish | clock", file=sys.stderr)
        return 2
    try:
        answer = request(task.output_dir, do, Path(files[0]) if files else None)
    except NoSession:
        print("The session has ended.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{files[0]} can't be read: {error.strerror}.", file=sys.stderr)
        return 1
    print(answer.get("message", ""))
    return 0 if answer.get("valid", True) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
