"""The tracker in docs/how-to/trackers.md is short, and works as printed there."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "trackers.md"


class _Webhook(BaseHTTPRequestHandler):
    said: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).said.append(json.loads(body)["text"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def test_the_tracker_of_the_page_reports_how_a_run_ended_once(
    make_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line.strip()]) <= 20
    (tmp_path / "chat.py").write_text(found[1], encoding="utf-8")
    caller = Catalogue(load=(str(tmp_path / "chat.py"),)).hook("mleredux_run_event")
    (hook,) = (hook for hook in caller.get_hookimpls() if hook.plugin_name == "chat")
    _Webhook.said = []
    with HTTPServer(("127.0.0.1", 0), _Webhook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("CHAT_WEBHOOK", f"http://127.0.0.1:{server.server_port}/")
        run, before = make_run(), set(threading.enumerate())
        for event in run.events():
            hook.function(run, event)
        for thread in set(threading.enumerate()) - before:
            if not thread.daemon:
                thread.join(20)
        server.shutdown()
    assert _Webhook.said == ["analyst on tides: done, score 0.97222"]
