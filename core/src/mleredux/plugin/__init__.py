"""The API for plugins: `hookimpl`, `Ref`, `Scheme`, and one module for each role.

| module | for |
|---|---|
| `task` | authors of tasks and competitions |
| `grader` | authors of graders and metrics |
| `technique` | authors of technique tasks |
| `command` | authors of commands |
| `experiment` | code that plans experiments |
| `agent` | authors of agents |
| `tool` | authors of tools for agents: MCP servers and skills |
| `executor` | authors of executors, which place runs on machines, and of object stores |
| `sandbox` | authors of sandboxes |
| `gateway` | authors of LLM gateways |
| `tracker` | authors of trackers, which receive a run's events |
| `artifact` | authors of artifact producers |
| `page` | authors of web pages and panels |
| `host` | services that prepare data, run agents and grade submissions |
| `files` | code that handles files in folders of agents |
| `container`, `export`, `program`, `rollout`, `session` | plugins of older releases: names that have moved to kits |

Everything here is documented in docs/reference/api-plugin.md, and changes only with an entry in the changelog.
`mleredux.models` (with its modules `events`, for events of runs, and `formats`), `mleredux.errors` and
`mleredux.hookspecs` are also public; everything else in mleredux is private.

A module of your package registers its objects::

    from mleredux.plugin import Ref, hookimpl

    mleredux_contract = 2


    @hookimpl
    def mleredux_register_agents():
        return [Ref("my-agent", "my_package.agent:agent")]
"""

from __future__ import annotations

from mleredux._core.moved import moved
from mleredux._core.plugins.discovery import Ref as Ref
from mleredux._core.plugins.discovery import Scheme as Scheme
from mleredux.hookspecs import hookimpl as hookimpl

__getattr__ = moved(__name__, "mleredux.hookspecs", {"CONTRACT_VERSION"})
