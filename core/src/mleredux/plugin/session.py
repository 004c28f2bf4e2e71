"""For doors to tasks: open sessions, in which somebody outside works on a task as agents do.

A session is a run: its sandbox, limits, validation, grade and rollout are those of any other. The plugin registers an
agent, under whose name its runs are listed::

    from mleredux.plugin.session import open_session, session_agent

    agent = session_agent("my-door", "Whoever comes through my door")

    def work() -> float | None:
        with open_session("digits", "my-door", limits={"time_limit": 600}) as session:
            session.execute('cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv')
            report = session.finish().report
        return report.score if report else None
"""

from __future__ import annotations

from mleredux_agentkit.shell import Finished
from mleredux_agentkit.workspace import Completed

from mleredux._core.persons import PERSON, PERSON_RULE
from mleredux._core.rewards import REWARDS, reward_of, rule_of
from mleredux._core.sessions import Attached, OpenSession, open_session, session_agent

__all__ = [
    "PERSON",
    "PERSON_RULE",
    "REWARDS",
    "Attached",
    "Completed",
    "Finished",
    "OpenSession",
    "open_session",
    "reward_of",
    "rule_of",
    "session_agent",
]
