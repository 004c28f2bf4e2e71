# ruff: noqa: E501 - one line a command of an agent
"""The labelled set of runs: scripted agents that fail in known ways, each as a search agent, a shell agent and a script.

    python plugins/experiments/tests/failures/scenarios.py

It runs every scenario for real on the toy task and packs what the rules read of each run into `runs.tar.xz`. A search
agent writes a rollout with `is_buggy` and measurements; a shell agent one with commands and their output alone; a
script leaves its log.
"""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mleredux_scripted_llm import ScriptedLlm
from variants import STYLES, VARIANTS

PACKED, LEAKY = Path(__file__).with_name("runs.tar.xz"), Path(__file__).with_name("leaky.py")
FILES = ("run.json", "events.jsonl", "report.json", "scores.json", "rollout.json", "logs/agent.log")

HELPERS = '''
import csv, json, os, pathlib, sys, time
data, out = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"]), pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"])
style, steps, began = STYLE, [], time.time()
train, test = (list(csv.DictReader((data / name).open())) for name in ("train.csv", "test.csv"))
facts = json.loads((pathlib.Path(os.environ["MLEREDUX_TASK_DIR"]) / "task.json").read_text())
ids, target = facts["id_columns"], facts["target_columns"][0]
features = [name for name in test[0] if name not in ids]
NOW = 0


def near(row, flip=0):
    best = min(train, key=lambda other: sum((float(row[n]) - float(other[n])) ** 2 for n in features))[target]
    return best


def predictions(wrong=0.0):
    other = {"large": "small", "small": "large", "0": "1", "1": "0"}
    rows = [[*(row[n] for n in ids), near(row)] for row in test]
    for row in rows[: int(wrong * len(rows))]:
        row[-1] = other.get(row[-1], row[-1])
    return rows


def submit(rows, head=None, wait=6):
    """Write the submission, and wait until it is kept as a version of its own."""
    part = out / ".part"
    with part.open("w", newline="") as file:
        csv.writer(file).writerows([head or [*ids, target], *rows])
    part.rename(out / "submission.csv")
    time.sleep(wait)


def step(code, output="ok", buggy=False, value=None, lower=False):
    """One step: of the rollout, where this style has one, and of the log."""
    print(output, flush=True)
    if style == "script":
        return
    number = len(steps) + 2
    found = {"step_id": number, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), "source": "agent",
             "message": "Next.", "tool_calls": [{"tool_call_id": f"c{number}", "function_name": "bash", "arguments": {"code": code}}],
             "observation": {"results": [{"source_call_id": f"c{number}", "content": output}]}, "llm_call_count": 0}
    if style == "search":
        found["extra"] = {"is_buggy": buggy, "lower_is_better": lower}
        if value is not None:
            found["extra"]["validation_metric"] = value
    steps.append(found)
    save()


def save():
    first = {"step_id": 1, "source": "user", "message": "Solve it."}
    document = {"schema_version": "ATIF-v1.8", "session_id": "x", "agent": {"name": style, "version": "1"},
                "steps": [first, *steps], "final_metrics": {"total_steps": len(steps) + 1}}
    (out / "rollout").mkdir(exist_ok=True)
    (out / "rollout" / "trajectory.json").write_text(json.dumps(document))


def code(text):
    (out / "code").mkdir(exist_ok=True)
    (out / "code" / "solution.py").write_text(text)


def trace(error, line=1):
    return f'Traceback (most recent call last):\\n  File "/tmp/solution.py", line {line}, in <module>\\n{error}'


def ask(model="scripted"):
    """One call of the gateway: the status, and the answer."""
    import urllib.error, urllib.request
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Which model?"}]}).encode()
    head = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    try:
        with urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, head)) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


GOOD = "model.fit(x, y)  # cross_val_score(model, x, y) first\\nmodel.predict(test)"
LEAK = "x = train[['width', 'height', 'booked']]  # cross_val_score(model, x, y) first\\nmodel.fit(x, y)"
DROP = "x = train.drop(columns=['booked', 'large'])  # cross_val_score(model, x, y) first\\nmodel.fit(x, y)"
'''

# Name: (styles, labels, limits, code). Labels are what a person who knows the scenario would say; the first is primary.
SCENARIOS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, float], str]] = {
    "clean": (STYLES, (), {}, "step(GOOD, 'accuracy 0.97', value=0.97); code(GOOD); submit(predictions())"),
    "clean-after-errors": (
        STYLES,
        (),
        {},
        "step('a = load(1) + read_the_table()', trace('NameError: name load is not defined'), True)\n"
        "step('b = load(2) + read_the_other_table()', trace('KeyError: 7'), True)\n"
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())",
    ),
    "clean-package-found": (
        STYLES,
        (),
        {},
        "step('import lightgbm as lgb; lgb.train(parameters)', trace(\"ModuleNotFoundError: No module named 'lightgbm'\"), True)\n"
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())",
    ),
    "clean-improving": (
        STYLES,
        (),
        {},
        "step(GOOD + ' # 1', 'accuracy 0.8', value=0.8); code(GOOD); submit(predictions(0.2))\n"
        "step(GOOD + ' # 2', 'accuracy 0.97', value=0.97); submit(predictions())",
    ),
    "nothing": (
        STYLES,
        ("no-submission",),
        {},
        "step('print(open(\"description.md\").read()) # read it all', 'read it')",
    ),
    "crash": (
        STYLES,
        ("code-error", "no-submission"),
        {},
        "step('x = table[\"price\"].mean() + something', trace('KeyError: price'), True); sys.exit(1)",
    ),
    "columns": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); submit([r[:1] for r in predictions()], ids)",
    ),
    "rows": (STYLES, ("invalid-submission",), {}, "step(GOOD, 'ok', value=0.9); code(GOOD); submit(predictions()[:9])"),
    "ids": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); submit([['x' + r[0], *r[1:]] for r in predictions()])",
    ),
    "labels": (
        STYLES,
        ("invalid-submission",),
        {},
        "step(GOOD, 'ok', value=0.9); code(GOOD); submit([[*r[:-1], ''] for r in predictions()])",
    ),
    "package": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('import torchvision.models as models; models.resnet18()', trace(\"ModuleNotFoundError: No module named 'torchvision'\"), True)\n"
        "sys.exit(1)",
    ),
    "pip": (
        STYLES,
        ("package", "no-submission"),
        {},
        "step('pip install autogluon.tabular==99.0 --quiet --no-input', 'ERROR: No matching distribution found for autogluon.tabular==99.0', True)\n"
        "sys.exit(1)",
    ),
    "memory": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('model = Big(layers=96).cuda(); model.fit(x, y)', trace('torch.cuda.OutOfMemoryError: CUDA out of memory.'), True); sys.exit(1)",
    ),
    "disk": (
        STYLES,
        ("resources", "no-submission"),
        {},
        "step('numpy.save(\"/tmp/features.npy\", features_of_all)', trace('OSError: [Errno 28] No space left on device'), True); sys.exit(1)",
    ),
    "too-slow": (
        STYLES,
        ("avoidable-timeout", "resources", "no-submission"),
        {"time_limit": 4},
        "step('model.fit(x, y, epochs=10000)  # validation_data later', 'epoch 1'); time.sleep(60)",
    ),
    "loop": (
        ("search", "shell"),
        ("debug-loop", "no-submission"),
        {},
        "for i in range(4): step(f'frame = merge(left_{i}, right_{i}, on=\"key\")', trace(f\"ValueError: columns overlap: '{i}'\", i), True)\n"
        "sys.exit(1)",
    ),
    "lost": (
        STYLES,
        ("crash-at-end", "invalid-submission"),
        {},
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions()); submit(predictions()[:5])",
    ),
    "crash-after": (
        STYLES,
        ("code-error",),
        {},
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())\n"
        "print(trace('RuntimeError: plotting failed')); sys.exit(1)",
    ),
    "overfit": (
        ("search",),
        ("overfitting",),
        {},
        "step(GOOD, 'accuracy 0.99', value=0.99); code(GOOD); time.sleep(2.2); submit(predictions(0.45)); time.sleep(9)",
    ),
    "worse": (
        STYLES,
        ("selection",),
        {},
        "step(GOOD, 'accuracy', value=None); code(GOOD); submit(predictions()); submit(predictions(0.35)); time.sleep(8)",
    ),
    "direction": (
        ("search",),
        ("metric-misread",),
        {"time_limit": 30},
        "step(GOOD + '# a', 'loss 0.1', value=0.1, lower=True); code(GOOD); submit(predictions(0.6)); time.sleep(8)",
    ),
    "again": (
        ("search", "shell"),
        ("repetition",),
        {"time_limit": 30},
        "for i in range(4): step('model.fit(x, y); print(model.score(x_valid, y_valid)) # once more', f'accuracy {i}')\n"
        "code(GOOD); submit(predictions(0.45)); time.sleep(8)",
    ),
    "lazy": (STYLES, ("ended-early",), {"time_limit": 300}, "step(GOOD, 'fine'); code(GOOD); submit(predictions(0.5))"),
    "engine-gone": (
        STYLES,
        ("environment",),
        {},
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())",
    ),
    "grader-broken": (
        STYLES,
        ("environment",),
        {},
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())",
    ),
    "calls-fail": (
        STYLES,
        ("api", "no-submission"),
        {},
        "for i in range(4): status, text = ask('broken')\n"
        "step('answer = client.chat.completions.create(model, messages)', f'status {status}: {text}', True); sys.exit(1)",
    ),
    "budget": (
        STYLES,
        ("api", "no-submission"),
        {"llm_calls": 2},
        "for i in range(3): status, text = ask()\n"
        "step('answer = client.chat.completions.create(model, messages)', f'status {status}: {text}', True); sys.exit(1)",
    ),
    "rate": (
        STYLES,
        ("api", "no-submission"),
        {},
        "step('answer = client.chat.completions.create(model, messages)', trace('openai.RateLimitError: Error code: 429 - Too Many Requests'), True); sys.exit(1)",
    ),
    "clean-call": (
        STYLES,
        (),
        {},
        "status, text = ask('broken'); status, text = ask()\n"
        "step(GOOD, 'accuracy 0.96', value=0.96); code(GOOD); submit(predictions())",
    ),
    "leak": (
        ("search",),
        ("leak-used", "overfitting"),
        {"time_limit": 30},
        "step(LEAK, 'accuracy 1.0', value=1.0); code(LEAK); submit(predictions()); time.sleep(8)",
    ),
    "leak-again": (
        ("search",),
        ("leak-used", "overfitting"),
        {"time_limit": 30},
        "step(LEAK + ' # 1', 'accuracy 0.99', value=0.99); code(LEAK); submit(predictions())\n"
        "step(LEAK + ' # 2', 'accuracy 1.0', value=1.0); submit(predictions(0.1)); time.sleep(6)",
    ),
    "leak-found": (
        ("search",),
        (),
        {},
        "features.remove('booked'); step(DROP, 'accuracy 0.97', value=0.97); code(DROP); submit(predictions())",
    ),
    "leak-not-it": (
        ("search",),
        ("overfitting",),
        {"time_limit": 30},
        "features.remove('booked'); step(DROP, 'accuracy 0.99', value=0.99); code(DROP); submit(predictions(0.45)); time.sleep(8)",
    ),
    "blind": (
        STYLES,
        ("ended-early", "no-validation"),
        {"time_limit": 300},
        "step('model.fit(x, y); model.predict(test)', 'done'); code('model.fit(x, y)\\nmodel.predict(test)'); submit(predictions(0.5))",
    ),
}
SCENARIOS |= VARIANTS

PLUGIN = """
from mleredux.plugin import hookimpl
from mleredux.plugin.agent import Agent, Limits

@hookimpl
def mleredux_register_agents():
    return [Agent(id="scenario", title="A scenario", command=("python3", "-c", {code!r}), limits=Limits({limits}),
                  network={network!r})]
"""
BROKEN = {
    "engine-gone": """
from mleredux.errors import SandboxError

@hookimpl(tryfirst=True)
def mleredux_run_agent(launch, session, sandbox):
    raise SandboxError("The container engine does not respond.")
""",
    "grader-broken": """
@hookimpl(tryfirst=True)
def mleredux_grade(task, submission, private):
    raise KeyError("answers.csv has no column 'large'")
""",
}
"""What breaks besides the agent."""


def labels() -> dict[str, tuple[str, ...]]:
    """The labels of each run of the set, by its name: a script has nothing to search, so it does not end early."""
    told = {f"{name}-{style}": found for name, (styles, found, _, _) in SCENARIOS.items() for style in styles}
    return told | {f"{name}-script": SCENARIOS[name][1][1:] for name in ("lazy", "blind")}


def perform(name: str, style: str, folder: Path) -> Path:
    """Run a scenario for real; return the run's directory."""
    import json
    import subprocess

    _, _, limits, code = SCENARIOS[name]
    place = folder / f"{name}-{style}"
    place.mkdir()
    told = ", ".join(
        f"{key}={value}"
        for key, value in {"time_limit": 40, "memory_mb": 256, "cpus": 0.25, "grace": 1, "notice": 0, **limits}.items()
    )
    program = HELPERS.replace("STYLE", repr(style), 1) + code + "\n"
    network, task = "gateway" if "ask(" in code else "none", "toy-leak" if name.startswith("leak") else "toy"
    plugin = PLUGIN.format(code=program, limits=told, network=network) + BROKEN.get(name, "")
    (place / "scenario.py").write_text(plugin)
    command = [sys.executable, "-m", "mleredux", "-p", str(place / "scenario.py"), "-p", "mleredux_testing.toys"]
    command += ["-p", str(LEAKY), "--block", "conduct", "--block", "notes", "run", task, "--agent", "scenario"]
    command += ["--sandbox", "process", "--runs-dir", str(place / "runs"), "--data-dir", str(folder / "data"), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True)
    try:
        return Path(json.loads(ended.stdout)["path"])
    except (ValueError, KeyError):
        raise RuntimeError(f"{name} {style}: {ended.stdout}{ended.stderr}") from None


def main() -> None:
    """Run all scenarios, and pack them."""
    only = sys.argv[1:]
    wanted = [(name, style) for name, (styles, *_) in SCENARIOS.items() for style in styles if not only or name in only]
    rules: list[dict[str, Any]] = [
        {"when": {"model": "broken"}, "reply": {"error": {"status": 500, "message": "Overloaded."}}},
        {"reply": {"text": "Nearest neighbors."}},
    ]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(6) as pool, ScriptedLlm({"rules": rules}) as llm:
        os.environ.update(llm.environment())
        runs = list(pool.map(lambda each: perform(*each, Path(scratch)), wanted))
        target = PACKED if not only else Path("runs.tar.xz")
        with tarfile.open(target, "w:xz") as archive:
            for (name, style), run in zip(wanted, runs, strict=True):
                paths = [run / file for file in FILES] + sorted((run / "output" / "code").glob("*.py"))
                paths += sorted((run / "submissions").glob("*.csv"))
                for path in paths:
                    if path.is_file():
                        archive.add(path, f"{name}-{style}/{path.relative_to(run)}")


if __name__ == "__main__":
    main()
