"""Draw the diagrams of the docs as SVG, for light and dark pages: boxes in zones, connected by arrows.

Plots of published experiments get colors for dark pages, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

STATIC = Path(__file__).parent / "_static"
STYLE = """
svg { background: #ffffff; }
text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
.title { font-weight: 600; }
.note { font-size: 12px; fill: #57606a; }
.left { text-anchor: start; }
rect, .mark { fill: #f6f8fa; stroke: #8c959f; }
.plugin { fill: #ddf4ff; stroke: #54aeff; }
.agent { fill: #fff8c5; stroke: #bf8700; }
.secret { fill: #ffebe9; stroke: #cf222e; }
.good { fill: #dafbe1; stroke: #2da44e; }
.zone { fill: none; stroke-dasharray: 6 4; }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.5; marker-end: url(#head); }
.blocked { fill: none; stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 4; }
.axis { stroke: #8c959f; }
#head path { fill: #57606a; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; }
text { fill: #e6edf3; }
.note { fill: #9198a1; }
rect, .mark { fill: #161b22; stroke: #6e7681; }
.plugin { fill: #0c2d6b; stroke: #388bfd; }
.agent { fill: #4b2900; stroke: #d29922; }
.secret { fill: #490202; stroke: #f85149; }
.good { fill: #033a16; stroke: #3fb950; }
.zone { fill: none; }
.arrow { stroke: #9198a1; }
#head path { fill: #9198a1; }
}
"""


PLOTS = ("findings-automl.svg", "findings-context.svg", "reinforcement-learning.svg")
"""Plots of matplotlib, whose colors for dark pages are added here."""
_DARK = {
    "fill: #ffffff": "fill: #0d1117",
    "fill: #eeeeee": "fill: #30363d",
    "stroke: #eeeeee": "stroke: #30363d",
    "stroke: #dddddd": "stroke: #30363d",
    "stroke: #000000": "stroke: #e6edf3",
    "stroke: #555555": "stroke: #9198a1",
    "fill: #0072b2": "fill: #388bfd",
    "stroke: #0072b2": "stroke: #388bfd",
}
_PLOT_STYLE = re.compile(r"(<style type=\"text/css\">\*\{[^}]*\})[^<]*(</style>)")


@dataclass
class Picture:
    """A diagram under construction.

    Attributes:
        alternative: Describes the picture in a sentence or more, for readers who do not see it.
        width: Width in pixels.
        height: Height in pixels.
        parts: SVG elements, in the order in which they are drawn.
        places: Left, top, width and height of each box, by key.
    """

    alternative: str
    width: int
    height: int
    parts: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)

    def box(self, key: str, at: tuple[int, int, int, int], *lines: str, kind: str = "") -> None:
        """Add a box with a title and notes below it."""
        left, top, width, height = self.places[key] = at
        self.parts.append(f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>')
        first = top + height / 2 + 5 - 8 * (len(lines) - 1)
        for number, line in enumerate(lines):
            role = "note" if number else "title"
            self.text(line, (left + width // 2, round(first + 17 * number)), role)

    def zone(self, at: tuple[int, int, int, int], title: str) -> None:
        """Add a dashed frame with a title above its content."""
        left, top, width, height = at
        self.parts.append(f'<rect class="zone" x="{left}" y="{top}" width="{width}" height="{height}" rx="8"/>')
        self.text(title, (left + 10, top + 18), "note left")

    def text(self, text: str, at: tuple[int, int], role: str = "") -> None:
        """Add a line of text."""
        self.parts.append(f'<text class="{role}" x="{at[0]}" y="{at[1]}">{escape(text)}</text>')

    def arrow(self, start: str, end: str, label: str = "", *, shift: int = 0, kind: str = "arrow") -> None:
        """Add an arrow between the nearest sides of two boxes."""
        (x1, y1, w1, h1), (x2, y2, w2, h2) = self.places[start], self.places[end]
        if x1 + w1 <= x2 or x2 + w2 <= x1:
            ahead = x1 + w1 <= x2
            a, b = (x1 + w1 if ahead else x1, y1 + h1 // 2 + shift), (x2 if ahead else x2 + w2, y2 + h2 // 2 + shift)
        else:
            below = y1 + h1 <= y2
            middle = (max(x1, x2) + min(x1 + w1, x2 + w2)) // 2 + shift
            a, b = (middle, y1 + h1 if below else y1), (middle, y2 if below else y2 + h2)
        self.parts.append(f'<path class="{kind}" d="M{a[0]} {a[1]} L{b[0]} {b[1]}"/>')
        if label:
            upright = a[0] == b[0]
            place = ((a[0] + b[0]) // 2 + (6 if upright else 0), (a[1] + b[1]) // 2 + (4 if upright else -6))
            self.text(label, place, "note left" if upright else "note")

    def svg(self) -> str:
        """Return the diagram as SVG."""
        head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self.alternative)}">\n<style>{STYLE}</style>\n'
            f'<defs>{head}<path d="M0 0 L8 4 L0 8 Z"/></marker></defs>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def flow() -> Picture:
    """Draw a run from raw data to a report, with the trust boundary."""
    picture = Picture(
        "A run from raw data to a report. Only trusted stages see the answers and the keys; the agent, behind the "
        "boundary of an isolated sandbox, sees public files, its output folder, validation and the gateway.",
        920,
        430,
    )
    picture.box("raw", (20, 30, 130, 54), "Raw data", "Kaggle, files, code")
    picture.box("prepare", (200, 30, 130, 54), "1 Prepare", "split once")
    picture.box("answers", (420, 30, 150, 54), "Answers", "private folder", kind="secret")
    picture.box("grade", (640, 30, 130, 54), "4 Grade", "child, no network")
    picture.box("report", (640, 130, 130, 54), "Report", "score, verdict", kind="good")
    picture.box("produce", (640, 230, 130, 54), "5 Produce", "artifacts, pages")
    picture.box("public", (200, 150, 130, 54), "Public files", "and the description")
    picture.box("build", (20, 295, 130, 54), "2 Build", "environment")
    picture.zone((190, 240, 400, 150), "Sandbox: the boundary of trust (process: none)")
    picture.box("agent", (210, 290, 140, 64), "3 Agent", "untrusted", kind="agent")
    picture.box("output", (420, 290, 150, 64), "Output folder", "submission, logs", kind="agent")
    picture.box("gateway", (20, 390, 130, 34), "Gateway: keys", kind="secret")
    picture.box("validate", (420, 150, 150, 54), "Validation", "form, never the score")
    picture.arrow("raw", "prepare")
    picture.arrow("prepare", "answers")
    picture.arrow("prepare", "public")
    picture.arrow("answers", "grade")
    picture.arrow("public", "agent")
    picture.text("read-only", (276, 228), "note left")
    picture.arrow("build", "agent")
    picture.arrow("agent", "output")
    picture.arrow("output", "validate")
    picture.text("asks", (501, 228), "note left")
    picture.arrow("grade", "report")
    picture.arrow("report", "produce")
    picture.parts.append('<path class="arrow" d="M570 322 L600 322 L600 70 L640 70"/>')
    picture.text("copy", (606, 215), "note left")
    picture.parts.append('<path class="arrow" d="M280 354 L280 407 L152 407"/>')
    picture.text("metered calls", (290, 412), "note left")
    picture.text("Red: answers and keys, outside of the sandbox.", (620, 340), "note left")
    picture.text("Yellow: the agent's, read as untrusted input.", (620, 360), "note left")
    picture.text("Network: none, gateway, or open.", (620, 380), "note left")
    return picture


def packages() -> Picture:
    """Draw the packages and their imports."""
    picture = Picture(
        "The packages of mleredux. Plugins of all roles import the public API and kits; the core imports no plugin.",
        920,
        400,
    )
    roles = (
        ("Competitions", "starter, mlebench"),
        ("Graders, techniques", "metrics, questions"),
        ("Agents", "automl, aide, repo, …"),
        ("Sandboxes", "docker, podman, apptainer"),
        ("Executors, stores", "nodes, slurm, ray, s3"),
        ("Bridges", "gymnasium, inspect, …"),
        ("Experiments, audit", "plans, floor, leaks, bundle"),
        ("Artifacts, trackers", "reports, notes, mlflow"),
        ("Services", "server, gateway, view"),
        ("Yours", "the same public API"),
    )
    picture.zone((10, 10, 900, 160), "Plugins: pip packages, which never import each other")
    for number, (title, note) in enumerate(roles):
        left, top = 20 + 178 * (number % 5), 38 + 64 * (number // 5)
        picture.box(title, (left, top, 168, 52), title, note, kind="good" if title == "Yours" else "plugin")
    picture.box(
        "kits",
        (40, 225, 380, 60),
        "Kits",
        "agents, containers, rollout, tables, programs, …",
        kind="plugin",
    )
    picture.box("api", (500, 225, 380, 60), "Public API", "mleredux, mleredux.plugin.*, .models, .errors")
    picture.box("core", (500, 330, 380, 56), "Core", "stages of a run, store, process sandbox, command line")
    picture.places["plugins"] = (10, 10, 900, 160)
    picture.arrow("plugins", "kits", "import")
    picture.arrow("plugins", "api", "import")
    picture.arrow("kits", "api")
    picture.arrow("api", "core")
    picture.text("Core imports no plugin: it finds them by entry points.", (30, 362), "note left")
    return picture


def names() -> Picture:
    """Draw the parts of a task's name and of the score of a technique task."""
    picture = Picture(
        "The name leakage+planted-7@wine: technique leakage, its variant planted with seed 7, and after the at "
        "sign the task wine. Below: score = facts times (0.3 + 0.7 times efficacy).",
        920,
        300,
    )
    picture.box("technique", (90, 30, 170, 50), "leakage", kind="plugin")
    picture.box("variant", (300, 30, 210, 50), "planted-7", kind="agent")
    picture.box("task", (550, 30, 170, 50), "wine", kind="good")
    picture.text("+", (280, 61), "title")
    picture.text("@", (530, 61), "title")
    picture.text("technique: the question", (175, 102), "note")
    picture.text("its variant: planted faults, seed 7", (405, 102), "note")
    picture.text("task: any name, also spaceship-titanic+fixed", (660, 102), "note")
    picture.box("score", (90, 180, 130, 60), "score", "0 to 1", kind="good")
    picture.box("facts", (290, 180, 190, 60), "facts", "agree with the data?", kind="plugin")
    picture.box("efficacy", (620, 180, 220, 60), "efficacy", "does the advice help a model?", kind="agent")
    picture.text("=", (255, 215), "title")
    picture.text("× ( 0.3 + 0.7 ×", (550, 215), "title")
    picture.text(")", (852, 215), "title")
    picture.text(
        "Advice counts only if the findings are right; if no advice has an effect, score = facts.",
        (465, 275),
        "note",
    )
    return picture


def deployment() -> Picture:
    """Draw a server with its database, workers, executors, object store and gateway."""
    picture = Picture(
        "A deployment: clients reach the server through a TLS proxy. The server keeps requests in a database, and its "
        "workers execute runs in containers of this machine, or send them to nodes of Slurm or Ray, which share files "
        "or an object store. The gateway alone holds provider keys.",
        920,
        420,
    )
    picture.box("clients", (20, 60, 150, 60), "Clients", "CLI, Python, browser")
    picture.box("proxy", (220, 60, 120, 60), "TLS proxy", "nginx, Caddy")
    picture.zone((380, 20, 520, 230), "The server's machine")
    picture.box("server", (400, 60, 180, 60), "mleredux serve", "API, pages, scheduler", kind="plugin")
    picture.box("workers", (630, 60, 120, 60), "Workers", "a process per run", kind="plugin")
    picture.box("runs", (400, 170, 150, 60), "Runs directory", "events, artifacts", kind="good")
    picture.box("gateway", (630, 170, 120, 60), "Gateway", "keys, budgets", kind="secret")
    picture.box("agents", (790, 60, 100, 60), "Agents", "containers", kind="agent")
    picture.box("providers", (790, 280, 110, 60), "LLM providers")
    picture.box("database", (220, 170, 120, 60), "Database", "PostgreSQL or file", kind="good")
    picture.zone((380, 272, 380, 120), "Optional: a cluster")
    picture.box("nodes", (400, 310, 150, 60), "Executor nodes", "Slurm, Ray", kind="plugin")
    picture.box("store", (600, 310, 140, 60), "Object store", "S3, MinIO", kind="good")
    picture.box("telemetry", (220, 310, 120, 60), "Monitoring", "Prometheus, OTLP")
    picture.arrow("clients", "proxy", "HTTPS")
    picture.arrow("proxy", "server")
    picture.arrow("server", "workers")
    picture.arrow("workers", "agents")
    picture.arrow("server", "runs")
    picture.arrow("workers", "gateway")
    picture.parts.append('<path class="arrow" d="M400 112 L362 112 L362 200 L342 200"/>')
    picture.arrow("nodes", "store")
    picture.parts.append('<path class="arrow" d="M750 200 L845 200 L845 278"/>')
    picture.parts.append('<path class="arrow" d="M570 120 L570 290 L520 290 L520 308"/>')
    picture.parts.append('<path class="arrow" d="M362 200 L362 340 L342 340"/>')
    return picture


def forest() -> Picture:
    """Draw a forest plot of fictional figures, with a guide to reading it."""
    picture = Picture(
        "How to read a forest plot, with made-up figures. Each row is a task: the box is the difference of B from A, "
        "the line its 95 % interval. The last row is the mean over tasks; its interval decides: right of zero B is "
        "better, left of zero A, across zero undecided.",
        920,
        420,
    )
    rows = (
        *(("digits", 6, 2, 10), ("wine", -3, -9, 3), ("diabetes", 9, 3, 15)),
        *(("breast-cancer", 2, -4, 8), ("cell-nuclei", -4, -8, 0.5), ("titanic", 5, -2, 12)),
    )
    zero, unit = 420, 14
    picture.parts.append(f'<path class="axis" d="M{zero} 40 L{zero} 340"/>')
    picture.text("A better", (zero - 90, 30), "note")
    picture.text("B better", (zero + 90, 30), "note")
    for number, (task, mean, low, high) in enumerate((*rows, ("all tasks", 2.5, -3, 8))):
        top = 62 + 42 * number
        picture.text(task, (150, top + 5), "title" if task == "all tasks" else "")
        picture.parts.append(f'<path class="axis" d="M{zero + low * unit:g} {top} L{zero + high * unit:g} {top}"/>')
        kind = "agent" if task == "all tasks" else "plugin"
        picture.parts.append(
            f'<rect class="{kind}" x="{zero + mean * unit - 6:g}" y="{top - 6}" width="12" height="12" rx="2"/>'
        )
    picture.text("box: the difference; line: its interval", (690, 67), "note left")
    picture.text("the interval excludes zero:", (690, 142), "note left")
    picture.text("B is better on this task", (690, 159), "note left")
    picture.text("mean over tasks: it includes", (690, 309), "note left")
    picture.text("zero, so the result is undecided", (690, 326), "note left")
    for points in (-10, 0, 10):
        picture.text(f"{points:+d}" if points else "0", (zero + points * unit, 362), "note")
    picture.text("difference in points of percentile (figures made up)", (zero, 390), "note")
    return picture


def with_dark_colors(plot: str) -> str:
    """Return an SVG of matplotlib with other colors on dark pages; colors that were added before are replaced."""
    rules = "".join(f'[style*="{light}"] {{ {dark} !important; }}\n' for light, dark in _DARK.items())
    style = f"\n@media (prefers-color-scheme: dark) {{\nsvg {{ fill: #e6edf3; }}\n{rules}}}\n"
    return _PLOT_STYLE.sub(lambda match: f"{match[1]}{style}{match[2]}", plot)


def pictures() -> dict[Path, str]:
    """Return all diagrams and plots, by file."""
    drawn = (flow, packages, names, deployment, forest)
    plots = {STATIC / name: with_dark_colors((STATIC / name).read_text(encoding="utf-8")) for name in PLOTS}
    return {**{STATIC / f"{draw.__name__}.svg": draw().svg() for draw in drawn}, **plots}
