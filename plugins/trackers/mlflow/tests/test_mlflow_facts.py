"""The data of a run that is sent, and what is withheld. No test here needs MLflow."""

from __future__ import annotations

import math
from typing import Any

import pytest
from mleredux_tracker_mlflow.facts import facts_of
from mleredux_tracker_mlflow.files import choose, send_files
from mleredux_tracker_mlflow.masks import MASK, looks_secret, masked


def test_params_are_what_was_requested(make_run: Any) -> None:
    params = facts_of(make_run(options={"depth": 4, "model": "small"})).params
    assert params["task"] == "tides" and params["agent"] == "analyst" and params["seed"] == "3"
    assert params["limits.time_limit"] == "120.0" and "limits.llm_calls" not in params
    assert params["options.depth"] == "4" and params["options.model"] == "small"


def test_tags_name_the_versions_used_and_how_the_run_ended(make_run: Any) -> None:
    tags = facts_of(make_run("failed", "agent_crashed")).tags
    assert (tags["mleredux.status"], tags["mleredux.cause"], tags["mleredux.medal"]) == (
        "failed",
        "agent_crashed",
        "silver",
    )
    assert tags["mleredux.image"] == "sha256:12" and tags["mlflow.source.git.commit"] == "0" * 40
    assert "accuracy 0.97222 (higher is better), silver medal" in tags["mlflow.note.content"]


@pytest.mark.parametrize(
    ("ended", "status"),
    [("done", "FINISHED"), ("failed", "FAILED"), ("timed_out", "FAILED"), ("cancelled", "KILLED")],
)
def test_each_final_state_has_its_mlflow_status(make_run: Any, ended: str, status: str) -> None:
    assert facts_of(make_run(ended)).status == status


def test_points_have_the_times_of_the_run_and_are_the_same_each_time(make_run: Any, at: Any) -> None:
    run = make_run()
    points = facts_of(run).points
    assert points == facts_of(run).points
    by_key: dict[str, list[tuple[float, int, int]]] = {}
    for point in points:
        by_key.setdefault(point.key, []).append((point.value, point.time, point.step))
    assert by_key["score_over_time"] == [(0.9, at(8), 1), (0.97222, at(20), 3)]
    assert by_key["resources/memory_mb"] == [(80, at(1.25), 0), (120, at(11.25), 10)]
    assert by_key["resources/cpus"] == [(1.5, at(11.25), 10)]
    assert by_key["stage_seconds/running"] == [(21, at(21.5), 0)]
    assert by_key["llm/prompt_tokens"] == [(900, at(21), 0)] and by_key["llm/cost_usd"] == [(0.25, at(21), 0)]
    assert by_key["silver_medal"] == [(1, at(22), 0)] and by_key["gold_medal"] == [(0, at(22), 0)]
    assert "resources/gpu_percent" not in by_key


def test_values_that_are_not_finite_are_omitted(make_run: Any) -> None:
    run = make_run()
    with (run.logs_dir / "resources.csv").open("a") as file:
        file.write("20,nan,inf,2,,\n30,1e999,20,2,,\n")
    points = facts_of(run).points
    assert all(math.isfinite(point.value) for point in points)
    assert [point.step for point in points if point.key == "resources/memory_mb"] == [0, 10]


@pytest.mark.parametrize("name", ["api_key", "apiKey", "OPENAI_API_KEY", "hf-token", "db.password", "secrets", "auth"])
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["tokenizer", "keyboard", "monkey", "author", "depth", "key_metric"])
def test_names_that_only_look_similar(name: str) -> None:
    assert not looks_secret(name)


def test_secrets_are_masked_by_name_by_format_and_in_urls(make_run: Any) -> None:
    options = {
        "api_key": "abc",
        "max_tokens": 4096,
        "nested": {"password": "p4ss", "url": "https://me:hunter2@host/x"},
        "model": "sk-0123456789abcdef0123",
        "tokens": ["uno", "due"],
    }
    run = make_run(options=options, agent="repo:https://me:hunter2@host/team/agent@main")
    facts = facts_of(run)
    sent = repr((facts.params, facts.tags))
    assert not any(secret in sent for secret in ("abc", "p4ss", "hunter2", "sk-0123", "uno"))
    assert facts.params["options.api_key"] == MASK and facts.params["options.max_tokens"] == "4096"
    assert facts.params["agent"] == f"repo:https://{MASK}@host/team/agent@main"
    assert masked("tokens", ["uno", 2]) == [MASK, 2]
    chosen, left_out = choose(run, 10)
    assert "run.json" not in {artifact.path for artifact in chosen} and left_out == 1


def test_files_are_chosen_by_size_and_by_names_that_every_store_keeps(make_run: Any) -> None:
    from mleredux._core.stages.produce import write_manifest

    run = make_run()
    for name in ("fine ü.txt", "a#b.txt", "a?b.txt", "100%25.txt", "..hidden", "large.bin"):
        (run.output_dir / name).write_bytes(b"x" * (2_000_000 if name == "large.bin" else 9))
    manifest = write_manifest(run)
    chosen, left_out = choose(run, 1)
    paths = [artifact.path for artifact in chosen]
    assert paths[:3] == ["report.json", "scores.json", "events.jsonl"]
    assert "output/fine ü.txt" in paths and "output/..hidden" in paths
    assert not {"output/a#b.txt", "output/a?b.txt", "output/100%25.txt", "output/large.bin"} & set(paths)
    assert left_out == 4 and len(chosen) == len(manifest.artifacts) - 4
    assert choose(run, 0) == ([], len(manifest.artifacts))


def test_a_file_that_became_a_link_since_is_not_sent(make_run: Any, tmp_path: Any) -> None:
    run = make_run()
    outside = tmp_path / "outside.txt"
    outside.write_text("of the host")
    submission = run.output_dir / "submission.csv"
    submission.unlink()
    submission.symlink_to(outside)
    uploaded: list[tuple[str, bytes]] = []
    sent: dict[str, str] = {}
    chosen, _ = choose(run, 10)
    missing = send_files(run, chosen, sent, lambda path, folder: uploaded.append((folder, path.read_bytes())), 10)
    assert missing == 1 and "output/submission.csv" not in sent
    assert all(b"of the host" not in content for _, content in uploaded) and len(uploaded) == len(chosen) - 1
