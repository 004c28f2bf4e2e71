"""Training data for language models, as JSON lines in TRL's formats: messages, preferences, step rewards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mleredux import MlereduxError
from mleredux_rollout import ExportedRun, Format, Trajectory, step_extra

from mleredux_bridge_formats.messages import chat, dumped, messages_of, placed


def _rollout(exported: ExportedRun) -> Trajectory:
    rollout = exported.rollout
    assert rollout is not None
    return rollout


def _facts(exported: ExportedRun) -> dict[str, Any]:
    """Return the origin of a line, so that readers can filter."""
    report, spec = exported.report, exported.run.spec
    return {
        "run": spec.id,
        "task": spec.task,
        "task_version": exported.run.use.task_version,
        "agent": spec.agent,
        "seed": spec.seed,
        "license": exported.license,
        "metric": report.metric if report else None,
        "lower_is_better": report.is_lower_better if report else None,
        "score": exported.score,
        "medal": report.medal if report else None,
        "verdict": report.verdict.status if report else None,
    }


def _sft(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    for exported in runs:
        rollout = _rollout(exported)
        before, after = chat(rollout)
        line: dict[str, Any] = {"messages": placed(exported.run, before + after), "metadata": _facts(exported)}
        if rollout.agent.tool_definitions:
            line["tools"] = rollout.agent.tool_definitions
        yield dumped(line)


def _preferences(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield pairs of runs of a task: the best with the worst, the second best with the second worst, and so on."""
    groups: dict[tuple[str, str | None], list[tuple[float, ExportedRun]]] = defaultdict(list)
    for exported in runs:
        report, score = exported.report, exported.score
        assert report is not None
        if score is None and report.valid_submission:
            continue  # scores that JSON can't represent are not informative
        value = float("-inf") if score is None else -score if report.is_lower_better else score
        groups[exported.run.spec.task, exported.run.use.task_version].append((value, exported))
    any_pair = False
    for group in groups.values():
        ordered = sorted(group, key=lambda pair: pair[0], reverse=True)
        for (good, chosen), (bad, rejected) in zip(ordered[: len(ordered) // 2], reversed(ordered), strict=False):
            if good > bad:
                any_pair = True
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
    if not any_pair:
        raise MlereduxError("No two of these runs have different scores on the same task.", hint="Choose more runs.")


def _step_rewards(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield steps; the reward is the improvement of the run's best score, and the label states whether the code
    worked.
    """
    for exported in runs:
        rollout, report = _rollout(exported), exported.report
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
            completions.append(placed(exported.run, messages_of(step)))
            labels.append(not facts.is_buggy)
            rewards.append(reward)
        if completions:
            prompt = placed(exported.run, chat(rollout)[0])
            line = {"prompt": prompt, "completions": completions, "labels": labels, "rewards": rewards}
            yield dumped({**line, "metadata": _facts(exported)})


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
