"""Commands and their output, extracted from a shell's terminal output. Uses the standard library only."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

RC = r"""
__mleredux_prompt() {
    local code=$? left=$((${MLEREDUX_DEADLINE:-0} - $(date +%s)))
    printf '\033]697;%s;%s\007' "$code" "$(HISTTIMEFORMAT= history 1 | base64 | tr -d '\n')"
    [ "$left" -lt 0 ] && left=0
    PS1="[$(printf '%d:%02d' $((left / 3600)) $((left / 60 % 60))) left] \W\$ "
}
__mleredux() { "$MLEREDUX_PYTHON" -m mleredux_agent_human "$@"; }
submit() { __mleredux submit "$@"; }
finish() { __mleredux finish; }
clock() { __mleredux clock; }
mleredux() {
    case "$1 $2" in
        "human submit" | "human finish") shift; __mleredux "$@" ;;
        "submit "* | "finish "* | "clock "*) __mleredux "$@" ;;
        *) command mleredux "$@" ;;
    esac
}
HISTCONTROL= HISTSIZE=100000 HISTFILE="$MLEREDUX_OUTPUT_DIR/logs/history"
PROMPT_COMMAND=__mleredux_prompt
PS0='\e]697;\a'
"""
"""Start-up file of the shell: the prompt with the remaining time, the commands of the workspace, and marks (ignored by
terminals) before and after the output of each command."""
_MARK = re.compile(rb"\x1b\]697;(?:(\d+);([A-Za-z0-9+/=]*))?\x07")
_BEGIN = b"\x1b]697;"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f]")
_MAX_OUTPUT = 1 << 18
_MAX_MARK = 1 << 17


class Transcript:
    """Extracts commands from the bytes of a terminal.

    Args:
        done: Called with each command, its exit code, and its output as plain text.
    """

    def __init__(self, done: Callable[[str, int, str], None]) -> None:
        self._done = done
        self._rest = b""
        self._output: bytearray | None = None

    def feed(self, data: bytes) -> bytes:
        """Process bytes of the shell; return the bytes to show."""
        data, shown, position = self._rest + data, b"", 0
        for mark in _MARK.finditer(data):
            shown += self._keep(data[position : mark.start()])
            position = mark.end()
            if mark[1] is None:
                self._output = bytearray()
            elif self._output is not None:
                self._done(_command(mark[2]), int(mark[1]), plain(bytes(self._output)))
                self._output = None
        left = data[position:]
        cut = left.rfind(b"\x1b")
        tail = left[cut:] if cut >= 0 else b""
        begun = tail and len(tail) < _MAX_MARK and (_BEGIN.startswith(tail) or tail.startswith(_BEGIN))
        self._rest = tail if begun else b""
        return shown + self._keep(left[:cut] if begun else left)

    def _keep(self, data: bytes) -> bytes:
        if self._output is not None:
            self._output += data[: max(0, _MAX_OUTPUT - len(self._output))]
        return data


def plain(output: bytes | str) -> str:
    """Return terminal output as text, without control sequences."""
    text = output if isinstance(output, str) else output.decode("utf-8", "replace")
    return _CONTROL.sub("", text.replace("\r\n", "\n")).strip("\n")


def _command(encoded: bytes) -> str:
    """Return the command in a line of the shell's history, without its number."""
    try:
        line = base64.b64decode(encoded).decode("utf-8", "replace")
    except ValueError:
        return ""
    return line.strip().partition(" ")[2].strip()
