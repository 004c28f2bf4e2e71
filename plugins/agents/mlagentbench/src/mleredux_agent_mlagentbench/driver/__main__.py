"""`python -m mleredux_agent_mlagentbench.driver`: the ResearchAgent on the task, until its end or the deadline."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import sys
import time
import traceback
from argparse import Namespace
from types import FrameType
from typing import Any

from mleredux_agent_mlagentbench.driver.models import Models, NoMoreCalls
from mleredux_agent_mlagentbench.driver.settings import Settings

_WITHOUT_RETRIEVAL = ["Retrieval from Research Log", "Append Summary to Research Log", "Reflection"]


def main() -> int:
    """Run the agent; the exit code is 0 where it ended by itself or in time, and there is a submission."""
    settings = Settings.from_env()
    if importlib.util.find_spec("MLAgentBench") is None:
        print(
            "This image has no MLAgentBench. Name a base image in which `import MLAgentBench` works, with "
            "--base-image; its repository is github.com/snap-stanford/MLAgentBench.",
            file=sys.stderr,
        )
        return 1
    settings.logs_dir.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, stop)
    failed = False
    try:
        work(settings)
    except Stopped as error:
        print(f"Stopped by {error}.", flush=True)
    except NoMoreCalls as error:
        failed = True
        print(f"The language model does not answer any more: {error}", file=sys.stderr)
    except Exception as error:
        failed = type(error).__name__ != "TimeoutException"
        print(traceback.format_exc() if failed else "Stopped by the deadline.", file=sys.stderr)
    finally:
        close(settings)
    handed_in = settings.submission.is_file()
    if not handed_in:
        print(f"There is no {settings.submission}.", flush=True)
    return 0 if handed_in and not failed else 1


class Stopped(BaseException):
    """The sandbox asked to stop."""


def stop(number: int, _frame: FrameType | None) -> None:
    """End what is going on."""
    raise Stopped(signal.Signals(number).name)


def work(settings: Settings) -> None:
    """Let the agent work.

    Raises:
        Exception: MLAgentBench gave up, or its time is over.
    """
    Models(settings.options, settings.logs_dir / "usage.jsonl").install()
    from MLAgentBench.agents.agent_research import ResearchAgent
    from MLAgentBench.environment import Environment

    class TaskEnvironment(Environment):  # type: ignore[misc]
        """An environment whose workspace is the sandbox's, and whose problem is the sandbox's task."""

        def _initialize_task_env(self) -> None:
            self._research_problem = settings.problem()
            self._work_dir = str(settings.work_dir)
            settings.work_dir.mkdir(parents=True, exist_ok=True)
            (settings.work_dir / "backup").mkdir(exist_ok=True)
            link = settings.work_dir / "data"
            if not link.is_symlink():
                link.symlink_to(settings.data_dir, target_is_directory=True)

    import MLAgentBench.environment as module

    module.get_task_info = lambda _task: ("mleredux", "")
    chosen = arguments(settings)
    with TaskEnvironment(chosen) as env:
        print(f"ResearchAgent: {ResearchAgent(chosen, env).run(env)}", flush=True)
    env.save("final")


def arguments(settings: Settings) -> Namespace:
    """What MLAgentBench's runner would make of its command line."""
    options: dict[str, Any] = settings.options
    return Namespace(
        task="mleredux",
        log_dir=str(settings.logs_dir),
        work_dir=str(settings.work_dir.parent),
        max_steps=options["max_steps"],
        agent_max_steps=options["max_steps"],
        max_time=max(1, int(settings.deadline - time.time())),
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


def close(settings: Settings) -> None:
    """Leave the code without the link to the data, and without the tools' copies of it."""
    with contextlib.suppress(FileNotFoundError):
        (settings.work_dir / "data").unlink()
    shutil.rmtree(settings.work_dir / "backup", ignore_errors=True)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # scripts that still run would be waited for otherwise
