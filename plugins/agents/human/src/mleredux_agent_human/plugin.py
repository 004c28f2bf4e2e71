"""Registration of the agent, also as `human:NAME`, and of the commands for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.page import Action, Page, Panel

mleredux_contract = 2
_SCHEME = "human:"


def is_person(reference: str) -> bool:
    """Return whether an agent is a person."""
    return reference == "human" or reference.startswith(_SCHEME)


@hookimpl
def mleredux_register_agents() -> Iterable[Ref]:
    """Register the agent, which is imported when used."""
    return [Ref("human", "mleredux_agent_human.agent:agent")]


@hookimpl
def mleredux_register_schemes() -> Iterable[Ref]:
    """Register the scheme of people's names: `human:ada`."""
    return [Ref("human", "mleredux_agent_human.agent:SCHEME")]


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands of `human`, and `runs release-grades`."""
    names = {
        "human": ("command", "Work on a task yourself, as an agent sees it.", ()),
        "human start": ("start", "Open a workspace and a shell in it.", ("start",)),
        "human submit": ("submit", "Submit a file in a workspace.", ("submit",)),
        "human finish": ("finish", "Finish working in a workspace, and show the grade.", ("finish",)),
        "runs release-grades": ("release", "", ("runs release",)),
    }
    return [
        Ref(
            name,
            f"mleredux_agent_human.{module}:command",
            {"title": title, "section": "Run and grade", "formerly": formerly},
        )
        for name, (module, title, formerly) in names.items()
    ]


@hookimpl
def mleredux_register_pages() -> Iterable[Page | Panel | Action]:
    """Return the pages for people: active people, a workspace in the browser, and the form that opens one."""
    from mleredux.plugin.page import Action, Page, Panel

    where = "mleredux_agent_human.pages"
    workspace = "/people/{run_id}"
    return [
        Page(path="/people", template="people.html.j2", function=f"{where}:people", menu="People"),
        Action(path="/people/start", function=f"{where}:start"),
        Page(path=workspace, template="workspace.html.j2", function=f"{where}:workspace"),
        Page(path=f"{workspace}/files.zip", template="", function=f"{where}:task_files"),
        Action(path=f"{workspace}/submit", function=f"{where}:submit"),
        Action(path=f"{workspace}/finish", function=f"{where}:finish"),
        Panel(title="Work on it yourself", template="offer.html.j2", function=f"{where}:offer", place="task"),
    ]
