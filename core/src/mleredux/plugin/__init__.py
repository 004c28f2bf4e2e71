"""The API for plugins: `hookimpl`, `Ref`, and one module for each role.

| module | for |
|---|---|
| `task` | authors of tasks and competitions |
| `grader` | authors of graders and metrics |
| `technique` | authors of technique tasks |
| `agent` | authors of agents |
| `rollout` | code that reads or writes trajectories |
| `session` | doors to tasks: open sessions, worked in from outside |
| `sandbox` | authors of sandboxes |
| `artifact` | authors of artifact producers |
| `tracker` | authors of trackers, which receive a run's events |
| `gateway` | authors of LLM gateways |
| `command` | authors of commands |
| `experiment` | code that plans experiments |
| `export` | authors of formats in which runs are exported |
| `page` | authors of web pages and panels |
| `host` | services that prepare data, run agents and grade submissions |
| `files` | code that handles files in folders of agents |

Everything here is documented in docs/reference/api-plugin.md, and changes only with an entry in the changelog;
everything else in mleredux is private. A module of your package registers its objects::

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
