"""The conformance kit: checks that every plugin must pass, including third-party ones.

The complete test file of a plugin:

```python
import pytest
import mleredux_testing as testing

@pytest.mark.parametrize("check", testing.checks("my-plugin"))
def test_conforms(check, tmp_path):
    check(tmp_path)
```

Each `check_…` inspects everything it can, then raises `NotConforming` with all problems, or returns its findings.
All names exported here are stable. This package does not import pandas, and imports pytest only for `checks`.

Modules:

- `plugin`, `conformance`, `scaffolds`: the registered commands and the agent `oracle`; `mleredux conformance`;
  `mleredux new` and its templates
- `suite`, `findings`: all checks of a plugin as parameters for pytest; problems, collected and raised together
- `plugins`, `tasks`, `techniques`, `graders`, `agents`, `sandboxes`, `executors`: the checks, by role
- `malformed`, `answers`, `leaks`, `programs`: for tasks: malformed submissions; the answers as a submission; answers in
  public files; programs as submissions
- `launches`, `sandbox_agents`, `names`: for sandboxes: started agents; their programs; an unusual folder name
- `toys`: a toy task and toy agents
- `pytest_plugin`: fixtures for pytest
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux_testing.agents import check_agent
    from mleredux_testing.executors import check_executor
    from mleredux_testing.findings import Findings, NotConforming
    from mleredux_testing.graders import TOY_ANSWERS, check_grader
    from mleredux_testing.plugins import check_plugin
    from mleredux_testing.sandboxes import check_sandbox
    from mleredux_testing.suite import checks
    from mleredux_testing.tasks import check_task
    from mleredux_testing.techniques import check_technique
    from mleredux_testing.toys import TOY_PLUGIN, toy_agent, toy_task

_HOME = {
    "Findings": "findings",
    "NotConforming": "findings",
    "TOY_ANSWERS": "graders",
    "TOY_PLUGIN": "toys",
    "check_agent": "agents",
    "check_executor": "executors",
    "check_grader": "graders",
    "check_plugin": "plugins",
    "check_sandbox": "sandboxes",
    "check_task": "tasks",
    "check_technique": "techniques",
    "checks": "suite",
    "toy_agent": "toys",
    "toy_task": "toys",
}

__all__ = [
    "TOY_ANSWERS",
    "TOY_PLUGIN",
    "Findings",
    "NotConforming",
    "check_agent",
    "check_executor",
    "check_grader",
    "check_plugin",
    "check_sandbox",
    "check_task",
    "check_technique",
    "checks",
    "toy_agent",
    "toy_task",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mleredux_testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mleredux_testing.{_HOME[name]}"), name)
