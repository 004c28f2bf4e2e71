"""What a plugin is written with: `hookimpl`, `Ref`, and one module for each role.

| module | who imports it |
|---|---|
| `task` | authors of tasks and competitions |
| `grader` | authors of graders and metrics |
| `technique` | authors of technique tasks |
| `agent` | authors of agents |
| `rollout` | readers and writers of trajectories |
| `sandbox` | authors of sandboxes |
| `artifact` | authors of artifact producers |
| `tracker` | authors of trackers, which follow a run's events |
| `gateway` | authors of gateways to language models |
| `command` | authors of commands |
| `host` | services that prepare, run and grade by themselves |
| `files` | whoever reads or writes files beside an agent's |

Everything here is documented in docs/reference/api-plugin.md, and changes only with an entry in the changelog; all else
in mleredux is private. A module of your package registers what the package has::

    from mleredux.plugin import Ref, hookimpl

    mleredux_contract = 2


    @hookimpl
    def mleredux_register_agents():
        return [Ref("my-agent", "my_package.agent:agent")]
"""

from __future__ import annotations

from mleredux._core.plugins.discovery import Ref
from mleredux.hookspecs import CONTRACT_VERSION, hookimpl

__all__ = ["CONTRACT_VERSION", "Ref", "hookimpl"]
