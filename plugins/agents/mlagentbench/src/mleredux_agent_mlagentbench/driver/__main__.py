"""`python -m mleredux_agent_mlagentbench.driver`: run the ResearchAgent until it ends or the deadline passes."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import sys
import traceback
from argparse import Namespace
from types import FrameType
from typing import Any

from mleredux_agentkit import NoMoreCalls, Stopped, Task, exit_now

from mleredux_agent_mlagentbench.driver.models import Models

_WITHOUT_RETRIEVAL = ["Retrieval from Research Log", "Append Summary to Research Log", "Reflection"]
_INTRODUCTION = """\
Solve the machine-learning task below. Your workspace is {}; its folder `data` contains the data. Scripts that you \
execute must write the predictions to {}. Write a first valid submission early, then improve it."""


def main() -> int:
    """Run the agent; return exit code 0 if it ended without an error, and there is a submission."""
    task = Task()
    if importlib.util.find_spec("MLAgentBench") is None:
        print(
            "MLAgentBench is not installed in this image. With --base-image, choose an image that "
            "contains it (github.com/snap-stanford/MLAgentBench).",
            file=sys.stderr,
        )
        return 1
    signal.signal(signal.SIGTERM, stop)
    failed = False
    try:
        work(task)
    except Stopped as error:
        print(f"Stopped by {error}.", flush=True)
    except NoMoreCalls as error:
        failed = True
        print(f"The language model no longer responds: {error}", file=sys.stderr)
    except Exception as error:
        failed = type(error).__name__ != "TimeoutException"
        print(traceback.format_exc() if failed else "Stopped by the deadline.", file=sys.stderr)
    finally:
        close(task)
    submitted = task.submission.is_file()
    if not submitted:
        print(f"There is no {task.submission}.", flush=True)
    return 0 if submitted and not failed else 1


def stop(number: int, _frame: FrameType | None) -> None:
    """Stop the current work. MLAgentBench enforces the deadline itself, with the same signal as the kit's clock."""
    raise Stopped(signal.Signals(number).name)


def work(task: Task) -> None:
    """Run the ResearchAgent.

    Raises:
        Exception: MLAgentBench gave up, or its time is up.
    """
    Models(task.options, task.logs("mlagentbench") / "usage.jsonl").install()
    from MLAgentBench.agents.agent_research import ResearchAgent
    from MLAgentBench.environment import Environment

    class TaskEnvironment(Environment):  # type: ignore[misc]
        """An environment with the sandbox's workspace, whose problem is the sandbox's task."""

        def _initialize_task_env(self) -> None:
            workspace = task.output_dir / "code"
            self._research_problem = task.prompt(_INTRODUCTION.format(workspace, task.submission))
            self._work_dir = str(workspace)
            (workspace / "backup").mkdir(parents=True, exist_ok=True)
            link = workspace / "data"
            if not link.is_symlink():
                link.symlink_to(task.data_dir, target_is_directory=True)

    import MLAgentBench.environment as module

    module.get_task_info = lambda _task: ("mleredux", "")
    chosen = arguments(task)
    with TaskEnvironment(chosen) as env:
        print(f"ResearchAgent: {ResearchAgent(chosen, env).run(env)}", flush=True)
    env.save("final")


def arguments(task: Task) -> Namespace:
    """Return the arguments that MLAgentBench's runner would parse from its command line."""
    options: dict[str, Any] = task.options
    return Namespace(
        task="mleredux",
        log_dir=str(task.logs("mlagentbench")),
        work_dir=str(task.output_dir),
        max_steps=options["max_steps"],
        agent_max_steps=options["max_steps"],
        max_time=max(1, int(task.left)),
        device=0,
        python=sys.executable,
        interactive=False,
        resume=None,
        resume_step=0,
        agent_type="ResearchAgent",
        llm_name=options["llm_name"],
        fast_llm_name=options["fast_llm_name"] or options["llm_name"],
        edit_script_llm_name=options["edit_script_llm_name"] or options["llm_name"],
        edit_script_llm_max_tokens=options["edit_script_llm_max_tokens"],
        actions_remove_from_prompt=[] if options["retrieval"] else list(_WITHOUT_RETRIEVAL),
        actions_add_to_prompt=[],
        retrieval=options["retrieval"],
        valid_format_entires=None,
        max_steps_in_context=options["max_steps_in_context"],
        max_observation_steps_in_context=options["max_observation_steps_in_context"],
        max_retries=options["max_retries"],
    )


def close(task: Task) -> None:
    """Remove the link to the data, and the tools' copies of the code."""
    with contextlib.suppress(FileNotFoundError):
        (task.output_dir / "code" / "data").unlink()
    shutil.rmtree(task.output_dir / "code" / "backup", ignore_errors=True)


if __name__ == "__main__":
    exit_now(main())  # do not wait for scripts that still run
