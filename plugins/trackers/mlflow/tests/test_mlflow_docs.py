"""The tracker of docs/trackers.md is short, and works as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "trackers.md"


class _Webhook(BaseHTTPRequestHandler):
    said: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).said.append(json.loads(body)["text"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def test_the_tracker_of_the_page_tells_how_a_run_ended(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line.strip()]) <= 20
    (tmp_path / "chat.py").write_text(found[1], encoding="utf-8")
    _Webhook.said = []
    with HTTPServer(("127.0.0.1", 0), _Webhook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        arguments = ["-p", "chat.py", "run", "digits", "--agent", "dummy", "--sandbox", "process", "--runs-dir", "runs"]
        done = subprocess.run(
            [sys.executable, "-m", "mleredux", *arguments],
            env={**os.environ, "CHAT_WEBHOOK": f"http://127.0.0.1:{server.server_port}/"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert len(_Webhook.said) == 1 and _Webhook.said[0].startswith("dummy on digits: done, score 0.")
