"""Exports of real runs, read by the systems whose formats they are; what must not leave stays here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mleredux import Run
from mleredux._core.cli.root import root
from mleredux.plugin.artifact import Evidence
from mleredux_bridge_formats.inspect_log import _usage
from mleredux_rollout import Trajectory
from mleredux_testing.pytest_plugin import validator

PLUGIN = '''
from mleredux import hookimpl
from mleredux.plugin.agent import Agent

CODE = """
import json, os, shutil
from pathlib import Path
out, data = Path(os.environ["MLEREDUX_OUTPUT_DIR"]), Path(os.environ["MLEREDUX_DATA_DIR"])
lines = (data / "sample_submission.csv").read_text().splitlines()
if os.environ["MLEREDUX_SEED"] == "9":
    lines = lines[:-1]
if os.environ["MLEREDUX_SEED"] == "1":
    lines = [lines[0], *(line.split(",")[0] + ",0.9,0.05,0.05" for line in lines[1:])]
(out / "submission.csv").write_text("\\\\n".join(lines) + "\\\\n")
usage = {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 40}
steps = [
    {"step_id": 1, "source": "user", "message": f"Read {os.environ['MLEREDUX_TASK_DIR']}/description.md."},
    {
        "step_id": 2, "source": "agent", "message": "I submit.", "metrics": usage,
        "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "cp"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "done"}]},
        "timestamp": "2026-01-01T00:00:00+00:00",
    },
    {"step_id": 3, "source": "agent", "message": "That is all.", "extra": {"is_buggy": True}},
]
totals = {"total_prompt_tokens": 100, "total_completion_tokens": 20, "total_cached_tokens": 40, "total_steps": 3}
agent = {"name": "writer", "version": "1", "model_name": "test/model"}
(out / "rollout").mkdir(exist_ok=True)
document = {"schema_version": "ATIF-v1.8", "agent": agent, "steps": steps, "final_metrics": totals}
(out / "rollout" / "trajectory.json").write_text(json.dumps(document))
"""

@hookimpl
def mleredux_register_agents():
    return [Agent(id="writer", title="Writes a submission and a trajectory", command=("python", "-c", CODE))]
'''
SCOUT = """
import asyncio, json, os, sys
from inspect_scout import transcripts_from

async def main():
    async with transcripts_from(sys.argv[1]).reader() as reader:
        read = [i async for i in reader.index()]
    print(json.dumps([[os.path.basename(i.source_uri), i.task_set, i.score, i.agent, i.message_count] for i in read]))

asyncio.run(main())
"""
FORMATS = ("atif", "croissant", "eee", "eval-results", "inspect", "otlp", "preferences", "sft", "step-rewards")


def command(home: Path, *words: str, code: int = 0, **variables: str) -> str:
    places = {"MLEREDUX_RUNS_DIR": str(home / "runs"), "MLEREDUX_DATA_ROOT": str(home / "data")}
    ended = CliRunner().invoke(root, ["-p", str(home / "plugin.py"), *words], env={**places, **variables})
    assert ended.exit_code == code, (ended.output, ended.exception)
    return ended.stdout if code == 0 else str(ended.exception or ended.output)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of one task: a good one, a bad one, and an invalid one."""
    home = tmp_path_factory.mktemp("formats")
    (home / "plugin.py").write_text(PLUGIN)
    command(home, "run", "wine", "--agent", "writer", "--seed", "0", "--seed", "1")
    command(home, "run", "wine", "--agent", "writer", "--seed", "9", code=3)
    return home


@pytest.fixture(scope="module")
def runs(home: Path) -> dict[int, Run]:
    """The runs by their seeds."""
    found = [Run(path) for path in (home / "runs").iterdir() if (path / "run.json").is_file()]
    return {run.spec.seed: run for run in found}


@pytest.fixture
def another(home: Path, runs: dict[int, Run]) -> Iterator[Path]:
    """A copy of the good run, to be changed."""
    path = home / "runs" / f"{runs[0].id}-another"
    shutil.copytree(runs[0].path, path, symlinks=True)
    record = json.loads((path / "run.json").read_text())
    record["spec"]["id"] = path.name
    (path / "run.json").write_text(json.dumps(record))
    yield path
    shutil.rmtree(path)


def exported(home: Path, to: str, *words: str, **variables: str) -> Path:
    target = home / f"out-{to}"
    command(home, "export", *words, "--to", to, "-o", str(target), **variables)
    return target


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_cancelled_and_empty_runs_are_not_trained_on_unless_all_are(
    home: Path, runs: dict[int, Run], another: Path
) -> None:
    rollout = json.loads((another / "rollout.json").read_text())
    rollout["steps"] = [step for step in rollout["steps"] if step["source"] != "agent"]
    content = (another / "rollout.json").read_text()
    for name, why in (("empty", "its agent did nothing"), ("cancelled", "it was cancelled")):
        (another / "rollout.json").write_text(json.dumps(rollout) if name == "empty" else content)
        if name == "cancelled":
            events = (another / "events.jsonl").read_text().replace('"state":"done"', '"state":"cancelled"')
            (another / "events.jsonl").write_text(events)
        for to in ("sft", "step-rewards"):
            names = (runs[0].id, another.name)
            told = json.loads(command(home, "export", *names, "--to", to, "-o", str(home / "part.jsonl"), "--json"))
            assert told["left_out"] == {another.name: f"{why} (--all includes it)"}
            told = json.loads(
                command(home, "export", *names, "--to", to, "-o", str(home / "all.jsonl"), "--json", "--all")
            )
            assert told["left_out"] == {}


def test_results_whose_score_was_given_out_are_not_published_unless_all_are(
    home: Path, runs: dict[int, Run], another: Path
) -> None:
    report = json.loads((another / "report.json").read_text())
    report["verdict"]["status"] = "score given"
    (another / "report.json").write_text(json.dumps(report))
    names = (runs[0].id, another.name)
    words = ("export", *names, "--to", "eval-results", "--option", "dataset=some/data", "--json")
    told = json.loads(command(home, *words, "-o", str(home / "published")))
    assert told["left_out"] == {another.name: "its test score was revealed (--all includes it)"}
    assert json.loads(command(home, *words, "-o", str(home / "all"), "--all"))["left_out"] == {}


def test_an_unknown_format_is_named_before_a_missing_file(home: Path, runs: dict[int, Run]) -> None:
    assert "There is no format 'nonsense'" in command(home, "export", runs[0].id, "--to", "nonsense", code=1)
    command(home, "export", runs[0].id, "--to", "atif", code=2)


def test_harbor_accepts_the_trajectories(home: Path, runs: dict[int, Run]) -> None:
    folder = exported(home, "atif", *(run.id for run in runs.values()))
    assert {path.name for path in folder.iterdir()} == {f"{run.id}.json" for run in runs.values()}
    program = (sys.executable, "-m", "harbor.utils.trajectory_validator")
    for path in folder.iterdir():
        ended = subprocess.run([*program, path], capture_output=True, text=True, env={"PYTHONPATH": str(validator())})
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_inspect_reads_the_logs_with_the_same_score(home: Path, runs: dict[int, Run]) -> None:
    from inspect_ai.log import list_eval_logs, read_eval_log

    folder = exported(home, "inspect", *(run.id for run in runs.values()))
    assert len(list_eval_logs(str(folder))) == 3
    for run in runs.values():
        path, report = folder / f"{run.id}.eval", run.report
        assert report is not None
        log = read_eval_log(str(path))
        assert log.samples is not None and log.results is not None
        (sample,) = log.samples
        assert [message.role for message in sample.messages] == ["user", "assistant", "tool", "assistant"]
        assert sample.model_usage["test/model"].total_tokens == 120
        assert read_eval_log(str(path), header_only=True).eval.task == "wine"
        ((name, score),) = (sample.scores or {}).items()
        if report.valid_submission:
            assert (name, score.value) == (report.metric, report.score)
            assert log.results.scores[0].metrics["mean"].value == report.score
        else:
            assert (name, score.value, score.explanation) == ("valid_submission", 0, report.message)


@pytest.mark.parametrize("models", [("a",), ("a", "b"), ("a", "b", None), ("a", "b", "a", "c")])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("priced", [True, False])
def test_the_use_of_each_model_adds_up_to_that_of_the_run(
    models: tuple[str | None, ...], own: bool, priced: bool
) -> None:
    steps, total = [], {"total_prompt_tokens": 0, "total_completion_tokens": 0, "total_cached_tokens": 0}
    cost = 0.0
    for number, model in enumerate(models, 1):
        metrics = {"prompt_tokens": 100 * number, "completion_tokens": number, "cached_tokens": 10 * number}
        metrics |= {"cost_usd": 0.1 * number} if priced else {}
        steps.append({"step_id": number, "source": "agent", "message": "x", "model_name": model, "metrics": metrics})
        cost += 0.1 * number
        for name in total:
            total[name] += int(metrics[name.removeprefix("total_")])
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": steps}
    extra = {} if own else {"total_prompt_tokens": 10**6}  # calls that no step has
    final = {**total, **extra, **({"total_cost_usd": cost} if priced else {})}
    usage = _usage(Trajectory.model_validate({**document, "final_metrics": final}), "a")
    assert usage.keys() == ({one or "a" for one in models} if own else {"a"})
    sums = {name: sum(one[name] for one in usage.values()) for name in ("output_tokens", "input_tokens_cache_read")}
    assert sums == dict(zip(sums, (final["total_completion_tokens"], final["total_cached_tokens"]), strict=True))
    prompt = sum(one["input_tokens"] + one["input_tokens_cache_read"] for one in usage.values())
    assert prompt == final["total_prompt_tokens"]
    costs = [one["total_cost"] for one in usage.values()]
    assert sum(costs) == pytest.approx(cost) if priced else set(costs) == {None}


def test_scout_reads_the_logs_with_the_same_score(home: Path, runs: dict[int, Run]) -> None:
    folder = exported(home, "inspect", *(run.id for run in runs.values()))
    asked = [validator("scout") / "bin" / "python", "-c", SCOUT, str(folder)]
    ended = subprocess.run(asked, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    read = {name: rest for name, *rest in json.loads(ended.stdout)}
    for run in runs.values():
        assert run.report is not None
        assert read[f"{run.id}.eval"] == ["wine", run.report.score or 0, "writer", 4]


def test_opentelemetry_reads_the_spans(home: Path, runs: dict[int, Run]) -> None:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    document = json.loads(exported(home, "otlp", *(run.id for run in runs.values())).read_text())
    message = ParseDict(document, ExportTraceServiceRequest())
    known = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    assert len(message.resource_spans) == 3
    for resource in document["resourceSpans"]:
        agent, *steps = resource["scopeSpans"][0]["spans"]
        assert [span["name"] for span in steps] == ["chat test/model", "execute_tool bash", "chat test/model"]
        assert {span["parentSpanId"] for span in steps} == {agent["spanId"]}
        assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in (agent, *steps))
        told = {fact["key"] for span in (agent, *steps) for fact in span["attributes"]}
        told |= {fact["key"] for event in agent["events"] for fact in event["attributes"]}
        assert {name for name in told if name.startswith("gen_ai.")} <= known


def test_training_data_has_the_forms_that_trainers_read(home: Path, runs: dict[int, Run]) -> None:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[ChatCompletionMessageParam])
    names = [run.id for run in runs.values()]
    tuned = lines(exported(home, "sft", *names))
    assert len(tuned) == 3
    for line in tuned:
        messages.validate_python(line["messages"])
        assert line["messages"][0]["content"] == "Read /task/description.md."
        assert line["metadata"]["license"] == "CC-BY-4.0"
    (pair,) = lines(exported(home, "preferences", *names))
    assert pair["metadata"]["rejected"]["score"] is None  # the invalid one
    best = min(score for line in tuned if (score := line["metadata"]["score"]) is not None)
    assert pair["metadata"]["chosen"]["score"] == best  # log loss
    for part in ("prompt", "chosen", "rejected"):
        messages.validate_python(pair[part])
    for line in lines(exported(home, "step-rewards", *names)):
        assert line["labels"] == [True, False]
        assert len(line["completions"]) == len(line["rewards"]) == 2


def test_rewards_of_steps_add_up_to_the_improvement(home: Path, another: Path) -> None:
    rollout = json.loads((another / "rollout.json").read_text())
    first, last = rollout["steps"][1:]
    first["extra"], last["extra"] = {"score_after_run": 0.9}, {"score_after_run": 0.25}  # log loss: lower is better
    worse = {**last, "step_id": 4, "extra": {"score_after_run": 0.5}}
    (another / "rollout.json").write_text(json.dumps({**rollout, "steps": [*rollout["steps"], worse]}))
    (line,) = lines(exported(home, "step-rewards", another.name))
    assert line["rewards"] == [0.0, 0.65, 0.0]


def test_croissant_describes_public_files_alone_and_reads_their_records(home: Path, runs: dict[int, Run]) -> None:
    import mlcroissant

    public = home / "data" / "wine" / "prepared" / "public"
    copy = home / "croissant"
    shutil.copytree(public, copy)
    command(home, "export", runs[0].id, "--to", "croissant", "-o", str(copy / "croissant.json"))
    dataset = mlcroissant.Dataset(jsonld=copy / "croissant.json")
    assert {file.name for file in dataset.metadata.distribution} == {path.name for path in public.iterdir()}
    records = list(dataset.records(record_set="train"))
    assert len(records) == len((public / "train.csv").read_text().splitlines()) - 1
    assert isinstance(records[0]["train/alcohol"], float)
    assert records[0]["train/cultivar"].startswith(b"cultivar_")


def test_results_fit_the_schemas_of_public_collections(home: Path, runs: dict[int, Run]) -> None:
    import jsonschema
    import yaml
    from huggingface_hub import EvalResultEntry, parse_eval_result_entries

    report = runs[0].report
    assert report is not None
    names = [run.id for run in runs.values()]
    entries = parse_eval_result_entries(yaml.safe_load(exported(home, "eval-results", *names).read_text()))
    assert all(isinstance(entry, EvalResultEntry) for entry in entries)
    assert report.score in [entry.value for entry in entries]
    assert len(entries) == 2  # the invalid one has no score
    folder = exported(home, "eee", *names, "--option", "organization=Us", "--option", "relationship=third_party")
    record = json.loads((folder / f"{runs[0].id}.json").read_text())
    assert record["evaluation_results"][0]["score_details"]["score"] == report.score
    schema = json.loads((validator() / "every_eval_ever" / "schemas" / "eval.schema.json").read_text())
    jsonschema.Draft7Validator(schema).validate(record)


@pytest.mark.parametrize("to", FORMATS)
def test_secrets_and_runs_that_quote_a_canary_stay_here(
    home: Path, runs: dict[int, Run], another: Path, to: str
) -> None:
    secret, mark = "sk-sentinel-0123456789", f"mleredux-canary-{'0a' * 20}"
    path = another / "rollout.json"
    text = path.read_text()
    path.write_text(text.replace("That is all.", f"The key is {secret}."))
    record = json.loads((another / "run.json").read_text())
    record["spec"]["grants"] = {"variables": ["GRANTED"]}
    (another / "run.json").write_text(json.dumps(record))
    names = {"sft": "OPENAI_API_KEY", "otlp": "GRANTED", "step-rewards": "MLEREDUX_DATABASE"}
    value = f"postgresql://me:{secret}@db/runs" if to == "step-rewards" else secret
    target = exported(home, to, another.name, runs[1].id, **{names.get(to, "MY_TOKEN"): value})
    files = [target] if target.is_file() else sorted(target.iterdir())
    content = b"".join(path.read_bytes() for path in files)
    for file in (path for path in files if zipfile.is_zipfile(path)):
        with zipfile.ZipFile(file) as archive:
            content += b"".join(archive.read(name) for name in archive.namelist())
    assert secret.encode() not in content
    if to in ("atif", "inspect", "otlp", "sft", "step-rewards"):
        assert b"The key is **********************." in content
    path.write_text(text.replace("That is all.", f"I read {mark}."))
    assert "it quotes the canary" in command(home, "export", another.name, "--to", to, "-o", str(target), code=1)


@pytest.mark.parametrize("to", FORMATS)
def test_a_tainted_result_is_neither_trained_on_nor_published(home: Path, another: Path, to: str) -> None:
    run = Run(another)
    assert run.report is not None
    run.write_report(run.report.judged((Evidence(kind="copied", level="seen", why="It copied."),), None))
    words = ("export", run.id, "--to", to, "-o", str(home / f"tainted-{to}"))
    if to in ("atif", "croissant", "inspect", "otlp"):
        command(home, *words)
    else:
        assert "its result is tainted" in command(home, *words, code=1)


def test_runs_are_chosen_by_score_verdict_and_licence(home: Path, runs: dict[int, Run]) -> None:
    scores = {run.id: run.report.score for run in runs.values() if run.report and run.report.score is not None}
    best = min(scores, key=lambda name: scores[name])
    words = ("export", *(run.id for run in runs.values()), "--to", "sft", "-o", str(home / "chosen.jsonl"), "--json")
    told = json.loads(command(home, *words, "--min-score", str(scores[best]), "--license", "CC-BY-4.0"))
    assert set(told["left_out"]) == {run.id for run in runs.values()} - {best}
    assert [line["metadata"]["run"] for line in lines(home / "chosen.jsonl")] == [best]
    assert "not verified" in command(home, *words, "--verified", code=1)
    assert "the license of its task's data is CC-BY-4.0" in command(home, *words, "--license", "MIT", code=1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--to", "inspct", "-o", "x"), "Did you mean inspect?"),
        (("--to", "eee", "-o", "x", "--option", "a=b"), "Its options: organization, relationship."),
        (("--to", "sft", "-o", "/proc/x/y.jsonl"), "can't be written"),
        (("--to", "preferences", "-o", "x"), "No two of these runs have different scores on the same task."),
    ],
)
def test_bad_requests_get_a_sentence(home: Path, runs: dict[int, Run], words: tuple[str, ...], told: str) -> None:
    assert told in command(home, "export", runs[0].id, *words, code=1)
