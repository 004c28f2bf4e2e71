"""The page opens offline, shows what happened, and is well-formed whatever the agent wrote."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from mleredux._core.store import Run
from mleredux.models import Artifact, Ledger
from mleredux_artifact_reports import mleredux_produce_artifacts, produce_page, shared, view
from mleredux_rollout import (
    AgentInfo,
    Observation,
    ObservationResult,
    Step,
    StepExtra,
    ToolCall,
    Trajectory,
    dump_rollout,
)

from .conftest import report_of

SCRIPT = "<script>alert(1)</script>"
IMAGE = "\"'><img src=x onerror=alert(1)>"
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """A parsed page: elements, attributes, and text by the id of the enclosing section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.sections: dict[str, str] = {}
        self.text = ""
        self._section = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self._section = dict(attrs).get("id") or "result"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        self.sections[self._section] = self.sections.get(self._section, "") + data

    def attributes(self, name: str) -> list[str]:
        return [found[name] or "" for _, found in self.elements if name in found]


def page_of(run: Run, *more: Artifact) -> Page:
    made = tuple(mleredux_produce_artifacts(run)) + tuple(more)
    made += tuple(produce_page(run, made))
    assert [made[0].path, made[-1].path] == ["rollout.json", "report.html"]
    page = Page((run.path / "report.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert_harmless(page)
    return page


def assert_harmless(page: Page) -> None:
    """No scripts, no handlers, no external resources, and a policy that would forbid them."""
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "iframe", "object", "embed", "img", "link", "form", "base", "audio", "video"}
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")]
    assert all(target.startswith(("./", "#")) for target in page.attributes("href"))
    assert "url(" not in page.html and "@import" not in page.html
    (style,) = re.findall(r"<style>(.*?)</style>", page.html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [found["content"] for tag, found in page.elements if tag == "meta" and "http-equiv" in found]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_a_graded_run_shows_score_medal_and_percentile(make_run: Any) -> None:
    page = page_of(make_run())
    for words in ("0.97222", "accuracy, higher is better", "Silver medal", "Above the median", "82nd percentile of 10"):
        assert words in page.sections["result"]
    for words in ("Gold 0.98", "Silver 0.97", "Bronze 0.95", "Median 0.93"):
        assert words in " ".join(page.sections["result"].split())


def test_all_sections_show_the_data_of_the_run(make_run: Any) -> None:
    run = make_run()
    page = page_of(run)
    assert all(state in page.sections["timeline"] for state in ("queued", "preparing", "running", "21.5 s"))
    assert "7.4 s" in page.sections["submissions"] and "0.97222" in page.sections["submissions"]
    assert "300 MB of 4 GB" in " ".join(page.sections["limits"].split())
    assert "Answers accessible" in page.sections["signals"]
    assert "reconstructed from the run's events" in page.sections["rollout"]
    assert "print('training')" in page.sections["rollout"]
    assert "validation accuracy 0.9722\n\\xff\\xfe done" in page.sections["log"]
    assert "output/code/train.py" in page.sections["artifacts"]
    assert run.id in page.sections["environment"] and "0.1.0" in page.sections["environment"]


def test_links_point_to_files_beside_the_page(make_run: Any) -> None:
    run = make_run()
    (run.output_dir / "code" / b"odd \xff#?%name.py".decode("utf-8", "surrogateescape")).write_bytes(b"1\n")
    links = [target for target in page_of(run).attributes("href") if target.startswith("./")]
    assert len(links) > 8
    for link in set(links) - {"./artifacts.json"}:
        assert Path(run.path / unquote_to_bytes(link).decode("utf-8", "surrogateescape")).is_file(), link


@pytest.mark.parametrize("attack", [SCRIPT, IMAGE, "</pre></style></title>" + SCRIPT, "{{ 7*7 }}{% for %}"])
@pytest.mark.attack
def test_output_of_an_agent_never_becomes_markup(make_run: Any, attack: str) -> None:
    run = make_run()
    call = ToolCall(tool_call_id="c", function_name=attack, arguments={"code": attack, attack: [attack]})
    answer = Observation(results=[ObservationResult(source_call_id="c", content=attack)])
    extra = StepExtra(node_id=attack, stage=attack, metric_name=attack, validation_metric=0.5, is_buggy=True).as_extra()
    step = Step(
        step_id=1,
        source="agent",
        message=attack,
        model_name=attack,
        reasoning_content=attack,
        tool_calls=[call],
        observation=answer,
        extra=extra,
    )
    own = Trajectory(
        agent=AgentInfo(name=attack, version=attack, model_name=attack),
        steps=[step, step.model_copy(update={"step_id": 2})],
        notes=attack,
    )
    (run.output_dir / "rollout" / "trajectory.json").write_bytes(dump_rollout(own))
    (run.logs_dir / "agent.log").write_text(attack, encoding="utf-8")
    name = attack.replace("/", "_")
    (run.output_dir / "code" / name).write_text(attack, encoding="utf-8")
    report = report_of(run, message=attack, ledger=Ledger(hosts=(attack,), notes=(attack,)))
    (run.path / "report.json").write_text(report.model_dump_json(), encoding="utf-8")
    page = page_of(run)
    assert page.text.count(attack) >= 15
    assert name in page.sections["artifacts"]


@pytest.mark.attack
def test_misleading_characters_are_shown_as_escapes(make_run: Any) -> None:
    run = make_run()
    (run.logs_dir / "agent.log").write_bytes("a\u202eb\x00c\x07\x1b[2Jd\x9b \u200be".encode())
    page = page_of(run)
    assert "a\\u202eb\\x00c\\x07d\\x9b \\u200be" in page.sections["log"]


@pytest.mark.attack
def test_the_end_of_a_terabyte_log_is_shown_within_a_second(make_run: Any) -> None:
    run = make_run()
    with (run.logs_dir / "agent.log").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 40)
        file.write(b"\nthe end\n")
    started = time.monotonic()
    page = page_of(run)
    assert time.monotonic() - started < 5
    assert "the end" in page.sections["log"]
    assert "are not shown" in page.sections["log"]
    assert len(page.html) < 1_000_000


@pytest.mark.attack
def test_a_rollout_of_many_long_steps_is_truncated(make_run: Any) -> None:
    run = make_run()
    steps = [Step(step_id=n, source="agent", message=f"step {n}\n" + "x" * 12_000) for n in range(1, 1_001)]
    own = Trajectory(agent=AgentInfo(name="a", version="1"), steps=steps)
    (run.output_dir / "rollout" / "trajectory.json").write_bytes(dump_rollout(own))
    page = page_of(run)
    assert len(page.html) < 5_000_000
    assert "800 steps in between are not shown" in page.sections["rollout"]
    assert "characters omitted" in page.sections["rollout"]
    assert "step 80\n" in page.sections["rollout"] and "step 1000" in page.sections["rollout"]
    assert "step 81\n" not in page.sections["rollout"]


@pytest.mark.attack
def test_a_list_of_many_files_is_truncated_with_a_count(make_run: Any) -> None:
    run = make_run()
    for number in range(400):
        (run.output_dir / "code" / f"{number:04}.dat").touch()
    (run.output_dir / "code" / "0000.link").symlink_to("/etc/passwd")
    page = page_of(run)
    assert "152 more files are in" in page.sections["artifacts"]
    assert "skipped: is a link" in page.sections["artifacts"]


@pytest.mark.parametrize("name", ["output", "output/logs", "output/code"])
@pytest.mark.attack
def test_a_folder_that_became_a_link_is_not_read(make_run: Any, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    for folder in (elsewhere, elsewhere / "code", elsewhere / "logs"):
        folder.mkdir()
        (folder / "answers.py").write_text("the answers", encoding="utf-8")
        (folder / "answers.log").write_text("the answers", encoding="utf-8")
    run = make_run()
    if (run.path / name).exists():
        (run.path / name).rename(tmp_path / "aside")
    (run.path / name).symlink_to(elsewhere)
    page = page_of(run)
    assert "answers.py" not in page.html and "answers.log" not in page.html and "the answers" not in page.html


@pytest.mark.parametrize(
    ("outcome", "report", "words"),
    [
        (
            {"cause": "agent_timed_out", "limit": "time", "message": "Stopped at 120 s."},
            {},
            "Agent timed out. Stopped at 120 s. It counts",
        ),
        (
            {"cause": "environment_broke", "message": "The engine is gone."},
            None,
            "Environment broke. The engine is gone. It does not count",
        ),
        (
            {},
            {"score": None, "valid_submission": False, "message": "Column label is missing."},
            "Invalid submission. Column label",
        ),
        (
            {},
            {"score": None, "submission_exists": False, "message": "There is no file."},
            "No submission. There is no file.",
        ),
        (
            {},
            {"gold_threshold": None, "silver_threshold": None, "bronze_threshold": None, "median_threshold": None},
            "0.97222",
        ),
    ],
)
def test_failed_runs_show_the_reason(make_run: Any, outcome: dict[str, Any], report: Any, words: str) -> None:
    page = page_of(make_run(outcome=outcome, report=report))
    assert words in " ".join(page.sections["result"].split())
    if outcome.get("limit"):
        assert "limit reached" in page.sections["limits"]


def test_a_run_that_never_started_its_agent_has_a_page(make_run: Any) -> None:
    run = make_run(report=None)
    first = (run.path / "events.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (run.path / "events.jsonl").write_text(first + "\n", encoding="utf-8")
    (run.logs_dir / "agent.log").unlink()
    page = page_of(run)
    assert "No score" in page.sections["result"]
    assert "wrote no submission" in page.sections["submissions"]
    assert "no logs" in page.sections["log"]


def test_the_page_of_a_run_that_goes_on_is_about_now(make_run: Any) -> None:
    run = make_run(report=None)
    lines = (run.path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    began = next(number for number, line in enumerate(lines) if json.loads(line)["type"] == "agent")
    (run.path / "events.jsonl").write_text("\n".join(lines[: began + 1]) + "\n", encoding="utf-8")
    with run.lock:
        timeline = view.page_of(run).timeline
    assert timeline is not None and " h" in timeline.total  # since the first event, which is long ago
    killed = view.page_of(run).timeline
    assert killed is not None and " h" not in killed.total
    _, trajectory = shared.trace_of(run, [])
    assert not any("ended" in str(step.message) for step in trajectory.steps)


def test_headings_descend_one_level_at_a_time_and_charts_are_labeled(make_run: Any) -> None:
    page = page_of(make_run())
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    for tag, attributes in page.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label")
    assert ("html", {"lang": "en"}) in page.elements


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(theme: int) -> None:
    import mleredux_artifact_reports

    style = Path(str(mleredux_artifact_reports.__file__)).parent / "templates" / "report.css"
    block = re.findall(r":root \{(.*?)\n ?\}|:root \{(.*?)\}", style.read_text(encoding="utf-8"), re.DOTALL)[theme]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", "".join(block)))
    pairs = [(front, back) for front in ("text", "soft", "accent") for back in ("page", "card", "sunk")]
    pairs += [(tone, f"{tone}-soft") for tone in ("good", "warn", "bad", "accent")]
    pairs += [(tone, "card") for tone in ("good", "warn", "bad")]
    for front, back in pairs:
        light, dark = sorted((luminance(colours[front]), luminance(colours[back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def written(run: Run, path: str, text: str, media_type: str) -> Artifact:
    (run.path / path).write_text(text, encoding="utf-8")
    return Artifact(path=path, media_type=media_type, producer="toy", title=f"Of {path}")


def test_what_other_plugins_wrote_is_listed_and_shown_with_feedback_first(make_run: Any) -> None:
    run = make_run()
    made = [
        written(run, "words.bin", "x", "application/octet-stream"),
        written(run, "output/README.md", "words of an agent", "text/markdown").model_copy(update={"producer": "agent"}),
        written(run, "conduct.md", "# Conduct\n\n- one\n\n#### Deep\n", "text/markdown"),
        written(run, "solutions.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n", "text/x-diff"),
        written(run, "feedback.md", "# Title\n\n## Facts\n\n| a | b |\n|:-|-:|\n| 1 | 2 |\n", "text/markdown"),
    ]
    page = page_of(run, *made)
    assert list(page.sections)[list(page.sections).index("timeline") - 1].startswith("document-")
    shown = " ".join(page.text.split())
    for words in ("Of feedback.md", "Facts", "Of conduct.md", "Of solutions.diff", "+new", "Of words.bin"):
        assert words in shown
    assert "words of an agent" not in shown
    assert ("span", {"class": "gi"}) in page.elements
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize(
    "attack", [SCRIPT, f"![x](http://a/b.png) [y](javascript:alert(1)) <http://a> {IMAGE}\n\n[y]: /z"]
)
@pytest.mark.attack
def test_documents_never_become_more_than_text(make_run: Any, attack: str) -> None:
    run = make_run()
    kinds = {"a.md": "text/markdown", "b.diff": "text/x-diff", "feedback.md": "text/markdown"}
    page = page_of(run, *(written(run, path, f"{attack}\n", kind) for path, kind in kinds.items()))
    assert page.text.count(attack.split("\n")[0]) >= 3


def test_code_of_steps_has_colors_and_stays_the_same_text(make_run: Any) -> None:
    run = make_run()
    code = "import os  # 'x'\n\n\nfor i in range(3):\n\tprint(f'{i}</code>')\n" + "# long\n" * 20
    call = ToolCall(tool_call_id="c", function_name="python", arguments={"code": code})
    own = Trajectory(
        agent=AgentInfo(name="a", version="1"), steps=[Step(step_id=1, source="agent", message="", tool_calls=[call])]
    )
    (run.output_dir / "rollout" / "trajectory.json").write_bytes(dump_rollout(own))
    page = page_of(run)
    assert code.strip() in page.sections["rollout"]
    assert ("span", {"class": "kn"}) in page.elements
