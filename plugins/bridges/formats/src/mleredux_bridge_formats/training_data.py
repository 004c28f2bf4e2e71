"""Training data for language models, as JSON lines in TRL's formats: messages, preferences, step rewards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mleredux import MlereduxError
from mleredux_rollout import ExportedRun, Format, Trajectory, step_extra

from mleredux_bridge_formats.messages import chat, dumped, messages_of, placed


def _rollout(one: ExportedRun) -> Trajectory:
    rollout = one.rollout
    assert rollout is not None
    return rollout


def _facts(one: ExportedRun) -> dict[str, Any]:
    """Return the origin of a line, so that readers can filter."""
    report, spec = one.report, one.run.spec
    return {
        "run": spec.id,
        "task": spec.task,
        "task_version": one.run.use.task_version,
        "agent": spec.agent,
        "seed": spec.seed,
        "license": one.license,
        "metric": report.metric if report else None,
        "lower_is_better": report.is_lower_better if report else None,
        "score": one.score,
        "medal": report.medal if report else None,
        "verdict": report.verdict.status if report else None,
    }


def _sft(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    for one in runs:
        rollout = _rollout(one)
        before, after = chat(rollout)
        line: dict[str, Any] = {"messages": placed(one.run, before + after), "metadata": _facts(one)}
        if rollout.agent.tool_definitions:
            line["tools"] = rollout.agent.tool_definitions
        yield dumped(line)


def _preferences(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield pairs of runs of a task: the best with the worst, the second best with the second worst, and so on."""
    groups: dict[tuple[str, str | None], list[tuple[float, ExportedRun]]] = defaultdict(list)
    for one in runs:
        report, score = one.report, one.score
        assert report is not None
        if score is None and report.valid_submission:
            continue  # scores that JSON can't represent are not informative
        value = float("-inf") if score is None else -score if report.is_lower_better else score
        groups[one.run.spec.task, one.run.use.task_version].append((value, one))
    found = False
    for group in groups.values():
        ordered = sorted(group, key=lambda pair: pair[0], reverse=True)
        for (good, chosen), (bad, rejected) in zip(ordered[: len(ordered) // 2], reversed(ordered), strict=False):
            if good > bad:
                found = True
                prompt, better = chat(_rollout(chosen))
                worse = chat(_rollout(rejected))[1]
                yield dumped(
                    {
                        "prompt": placed(chosen.run, prompt),
                        "chosen": placed(chosen.run, better),
                        "rejected": placed(rejected.run, worse),
                        "metadata": {"chosen": _facts(chosen), "rejected": _facts(rejected)},
                    }
                )
    if not found:
        raise MlereduxError("No two of these runs have different scores on the same task.", hint="Choose more runs.")


def _step_rewards(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield steps; the reward is the improvement of the run's best score, and the label states whether the code
    worked.
    """
    for one in runs:
        rollout, report = _rollout(one), one.report
        sign = -1.0 if report is not None and report.is_lower_better else 1.0
        best: float | None = None
        completions, labels, rewards = [], [], []
        for step in rollout.steps:
            if step.source != "agent":
                continue
            facts = step_extra(step)
            reward, score = 0.0, facts.score_after_run
            if score is not None:
                reward = max(0.0, sign * (score - best)) if best is not None else 0.0
                best = score if best is None else sign * max(sign * score, sign * best)
            completions.append(placed(one.run, messages_of(step)))
            labels.append(not facts.is_buggy)
            rewards.append(reward)
        if completions:
            prompt = placed(one.run, chat(rollout)[0])
            line = {"prompt": prompt, "completions": completions, "labels": labels, "rewards": rewards}
            yield dumped({**line, "metadata": _facts(one)})


_LINES = partial(Format, suffix=".jsonl", together=True, trusted=True)
SFT = _LINES(id="sft", title="Messages for fine-tuning (JSONL)", write=_sft, needs=("rollout",))
PREFERENCES = _LINES(
    id="preferences",
    title="Pairs of a better and a worse run (JSONL)",
    write=_preferences,
    needs=("rollout", "report"),
)
STEP_REWARDS = _LINES(
    id="step-rewards",
    title="Rewards for the steps of each run (JSONL)",
    write=_step_rewards,
    needs=("rollout",),
)
