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

- `plugin`, `scaffolds`: the registered commands and the agent `oracle`; `mleredux new` and its templates
- `conformance`, `findings`: all checks of a plugin, as parameters for pytest and as `mleredux conformance`; problems,
  collected and raised together
- `plugins`, `tasks`, `techniques`, `graders`, `agents`, `sandboxes`, `executors`: the checks, by role
- `malformed`, `answers`, `leaks`: for tasks: malformed submissions; the answers as a submission; answers in public
  files
- `launches`, `sandbox_agents`, `names`: for sandboxes: started agents; their programs; an unusual folder name
- `toys`: a toy task and toy agents
- `pytest_plugin`: fixtures for pytest
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux_testing.agents import check_agent as check_agent
    from mleredux_testing.conformance import checks as checks
    from mleredux_testing.executors import check_executor as check_executor
    from mleredux_testing.findings import Findings as Findings
    from mleredux_testing.findings import NotConforming as NotConforming
    from mleredux_testing.graders import TOY_ANSWERS as TOY_ANSWERS
    from mleredux_testing.graders import check_grader as check_grader
    from mleredux_testing.plugins import check_plugin as check_plugin
    from mleredux_testing.sandboxes import check_sandbox as check_sandbox
    from mleredux_testing.tasks import check_task as check_task
    from mleredux_testing.techniques import check_technique as check_technique
    from mleredux_testing.toys import TOY_PLUGIN as TOY_PLUGIN
    from mleredux_testing.toys import toy_agent as toy_agent
    from mleredux_testing.toys import toy_task as toy_task

_HOME = {
    **dict.fromkeys(("Findings", "NotConforming"), "findings"),
    **dict.fromkeys(("TOY_ANSWERS", "check_grader"), "graders"),
    **dict.fromkeys(("TOY_PLUGIN", "toy_agent", "toy_task"), "toys"),
    **{f"check_{kind}": f"{kind}s" for kind in ("agent", "executor", "plugin", "task", "technique")},
    "check_sandbox": "sandboxes",
    "checks": "conformance",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mleredux_testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mleredux_testing.{_HOME[name]}"), name)
