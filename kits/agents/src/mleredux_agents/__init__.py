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

from mleredux_agentkit.shell import Finished as Finished
from mleredux_agentkit.workspace import Completed as Completed

from mleredux_agents.builders import AgentOptions as AgentOptions
from mleredux_agents.builders import CliOptions as CliOptions
from mleredux_agents.builders import CommandRecipe as CommandRecipe
from mleredux_agents.builders import cli_agent as cli_agent
from mleredux_agents.builders import install_parts as install_parts
from mleredux_agents.builders import llm_agent as llm_agent
from mleredux_agents.builders import session_agent as session_agent
from mleredux_agents.options import Libraries as Libraries
from mleredux_agents.options import libraries as libraries
from mleredux_agents.options import read_options as read_options
from mleredux_agents.persons import PERSON as PERSON
from mleredux_agents.persons import PERSON_RULE as PERSON_RULE
from mleredux_agents.rewards import REWARDS as REWARDS
from mleredux_agents.rewards import RewardRule as RewardRule
from mleredux_agents.rewards import reward_of as reward_of
from mleredux_agents.rewards import rule_of as rule_of
from mleredux_agents.sessions import Attached as Attached
from mleredux_agents.sessions import OpenSession as OpenSession
from mleredux_agents.sessions import close_sessions as close_sessions
from mleredux_agents.sessions import exit_on_signals as exit_on_signals
from mleredux_agents.sessions import fair_share as fair_share
from mleredux_agents.sessions import open_session as open_session
from mleredux_agents.sessions import opening as opening
from mleredux_agents.solutions import solution_of as solution_of
