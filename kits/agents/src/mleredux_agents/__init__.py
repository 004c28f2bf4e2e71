"""For plugins of agents and of bridges to tasks: declarations of agents, and open sessions.

| modules | contents |
|---|---|
| `builders`, `options` | declarations of agents that call LLMs or are commands; their options |
| `sessions`, `persons` | open sessions; names of the people who work in them |
| `hosted`, `steps` | sessions without processes; the commands of such a session |
| `rewards`, `solutions` | the rewards that bridges give; the reference solutions that exports contain |

An agent that calls LLMs (`llm_agent`), or that is a command-line program (`cli_agent`), is declared in a few lines. A
bridge opens a session, a run in whose sandbox an external client works instead of an agent; limits, validation, grade
and rollout work as in any other run. The plugin registers an agent under whose name its runs are listed::

    from mleredux_agents import open_session, session_agent

    agent = session_agent("my-bridge", "Clients of my bridge")

    def work() -> float | None:
        with open_session("digits", "my-bridge", time_limit=600) as session:
            session.execute('cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv')
            report = session.finish().report
        return report.score if report else None
"""

from __future__ import annotations

from mleredux_agentkit.shell import Finished
from mleredux_agentkit.workspace import Completed

from mleredux_agents.builders import AgentOptions, CliOptions, CommandRecipe, cli_agent, install_parts, llm_agent
from mleredux_agents.options import Libraries, libraries, read_options
from mleredux_agents.persons import PERSON, PERSON_RULE
from mleredux_agents.rewards import REWARDS, RewardRule, reward_of, rule_of
from mleredux_agents.sessions import Attached, OpenSession, fair_share, open_session, opening, session_agent
from mleredux_agents.solutions import solution_of

__all__ = [
    "PERSON",
    "PERSON_RULE",
    "REWARDS",
    "AgentOptions",
    "Attached",
    "CliOptions",
    "CommandRecipe",
    "Completed",
    "Finished",
    "Libraries",
    "OpenSession",
    "RewardRule",
    "cli_agent",
    "fair_share",
    "install_parts",
    "libraries",
    "llm_agent",
    "open_session",
    "opening",
    "read_options",
    "reward_of",
    "rule_of",
    "session_agent",
    "solution_of",
]
