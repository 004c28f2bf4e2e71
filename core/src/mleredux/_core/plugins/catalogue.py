"""The catalogue of registered objects; objects are imported on use."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

from mleredux._core.loans import provided_secrets
from mleredux._core.plugins.calls import checked_task, configured, without_output
from mleredux._core.plugins.discovery import KINDS, SINGULAR, Entry, Plugin, Ref, discover, installation
from mleredux._core.plugins.index import forget_index, read_index
from mleredux.errors import NotApplicable, NotFound, PluginError, is_interrupt, one_line

if TYPE_CHECKING:
    import pluggy

    from mleredux._core.executors import Executor
    from mleredux._core.plugins.capabilities import Capabilities
    from mleredux._core.protocols import Finding, Sandbox
    from mleredux.models import Agent, Grader, RunPlan, Task, Technique
    from mleredux.models.agent import Tool

TRACE_VARIABLE = "MLEREDUX_TRACE"
TECHNIQUES = "techniques"
"""Before `@TASK`: the set of all technique tasks on a task."""


class Catalogue:
    """All plugins of an environment and what they register.

    Args:
        block: Names of plugins not to load.
        load: Additional modules or plugin files.
        plugins: The plugins; None: the installed plugins.
    """

    def __init__(
        self, *, block: Iterable[str] = (), load: Iterable[str] = (), plugins: list[Plugin] | None = None
    ) -> None:
        self.block, self.load = tuple(block), tuple(load)
        if plugins is None:
            here = installation()
            plugins = discover(here, block=self.block, load=self.load)
            read_index(plugins, here)
        self.plugins = plugins
        self._entries: dict[str, dict[str, Entry]] = {}
        self._duplicates: dict[tuple[str, str], str] = {}
        self._objects: dict[tuple[str, str], Any] = {}
        self._known_agents: dict[str, Agent] = {}

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        """The pluggy manager; its import is deferred until a plugin must be loaded."""
        from mleredux._core.plugins.loader import make_manager

        traced = os.environ.get(TRACE_VARIABLE, "") not in ("", "0")
        return make_manager((lambda line: print(line, end="", file=sys.stderr)) if traced else None)

    def load_plugin(self, plugin: Plugin) -> bool:
        """Import a plugin; return whether it is usable."""
        from mleredux._core.plugins.loader import load

        with without_output():
            return load(plugin, self.manager)

    def load_all(self) -> None:
        """Import every plugin that is not blocked, and check everything they register.

        Plugins recorded as failed are retried.
        """
        for plugin in self.plugins:
            if plugin.recorded:
                plugin.state, plugin.recorded = "found", False
                recorded, plugin.errors = plugin.errors, []
                self.load_plugin(plugin)
                if plugin.errors != recorded:
                    forget_index()
            self.load_plugin(plugin)
        for kind in KINDS:
            self.entries(kind)

    def hook(self, name: str) -> pluggy.HookCaller:
        """Return a hook, after loading every plugin that implements it (or may)."""
        for plugin in self.plugins:
            if plugin.state == "found" and (plugin.hooks is None or name in plugin.hooks):
                self.load_plugin(plugin)
        return cast("pluggy.HookCaller", getattr(self.manager.hook, name))

    def entries(self, kind: str) -> dict[str, Entry]:
        """Return all registered objects of a type, sorted by id. Imports only plugins with dynamic registrations."""
        if kind not in self._entries:
            by_id: dict[str, Entry] = {}
            for plugin in self.plugins:
                for entry in self._registered(plugin, kind):
                    other = by_id.setdefault(entry.id, entry)
                    if other is not entry:
                        self._report_duplicate(entry, other)
            self._entries[kind] = dict(sorted(by_id.items()))
        return self._entries[kind]

    def get(self, kind: str, name: str) -> Any:
        """Return the object registered under an id.

        Raises:
            NotFound: Nothing is registered under this id; similar ids are suggested.
            PluginError: Two plugins register the id, or the object can't be imported.
        """
        key = (kind, name)
        if key not in self._objects:
            entries = self.entries(kind)
            if key in self._duplicates:
                raise PluginError(self._duplicates[key])
            if name not in entries:
                self._refuse(kind, name)
            self._objects[key] = self.resolved(entries[name])
        return self._objects[key]

    def task(self, name: str) -> Task:
        """Return a task by id, including variants (`id+variant`) and technique tasks (`technique@id`).

        Raises:
            NotFound: The task, variant or technique does not exist.
            NotApplicable: The technique does not apply to the task.
        """
        if "@" in name:
            return self._derive(name)
        if name in self.entries("tasks"):
            return cast("Task", self.get("tasks", name))
        base, plus, variant = name.partition("+")
        declared: Task | None = self.get("tasks", base) if plus and base in self.entries("tasks") else None
        make = declared.variants.get(variant) if declared is not None else None
        if make is not None:
            derived = checked_task(name, lambda: make(declared), "the variant's function")
        else:
            fault = "the plugin's `mleredux_find_task`"
            derived = checked_task(name, lambda: self.hook("mleredux_find_task")(name=name, base=declared), fault)
        if derived is not None:
            return derived
        if declared is None:
            self._refuse("tasks", base if plus else name)
        if variant.startswith("debug-"):
            raise NotFound(f"Sample {name} needs a plugin.", hint="Install it: pip install mleredux-agent-repo")
        variants = ", ".join(f"{base}+{key}" for key in (*sorted(declared.variants), "debug-ROWS"))
        raise NotFound(f"Task {base} has no variant {variant!r}.", hint=f"It has: {variants}.")

    def network_findings(self, spec: RunPlan) -> list[Finding]:
        """Return the findings of commands `doctor NAME` whose `Ref` declares the run's network; none for a replay."""
        entries = self.entries("commands") if spec.replay is None else {}
        names = [name for name, entry in entries.items() if entry.ref.summary.get("network") == spec.network]
        return [finding for name in names for finding in self.get("commands", name).callback(spec)]

    def technique(self, name: str) -> Technique:
        """Return a technique by id."""
        return cast("Technique", self.get("techniques", name))

    def _derive(self, name: str) -> Task:
        """Derive a task from another with a technique."""
        question, _, base = name.partition("@")
        technique_id, plus, variant = question.partition("+")
        technique, task = self.technique(technique_id), self.task(base)
        derived = checked_task(
            name, lambda: technique.derive(task, variant if plus else None), "the technique's `derive`"
        )
        assert derived is not None
        return derived

    def task_names(
        self, names: Iterable[str], sets: Iterable[str] = (), refused: dict[str, str] | None = None
    ) -> list[str]:
        """Resolve task names given by a user: ids, and sets by name (`low`, `starter`; `all`; `techniques@TASK`).

        Args:
            names: The ids.
            sets: The sets.
            refused: Collects the tasks in a set that do not apply, with the reasons.

        Raises:
            NotFound: A set has no tasks.
        """
        chosen, reasons = list(names), {} if refused is None else refused
        known = {entry.id: {"all", *entry.ref.summary.get("sets", ())} for entry in self.entries("tasks").values()}
        for wanted in sets:
            if wanted.startswith(TECHNIQUES) and "@" in wanted:
                members = self._technique_names(wanted, reasons)
            else:
                members = [name for name, including in known.items() if wanted in including]
            if not members and reasons:
                raise NotFound(f"{wanted} has no tasks: {next(iter(reasons.values()))}")
            if not members:
                listed = ", ".join([*sorted({"all"}.union(*known.values())), f"{TECHNIQUES}@TASK"])
                raise NotFound(f"There is no set {wanted!r}.", hint=f"The sets are: {listed}.")
            chosen += members
        return list(dict.fromkeys(chosen))

    def _technique_names(self, wanted: str, refused: dict[str, str]) -> list[str]:
        """Return the tasks that techniques derive from a task, and collect those that do not apply."""
        self.task(wanted.partition("@")[2])
        names = [name + wanted.removeprefix(TECHNIQUES) for name in self.entries("techniques")]
        for name in names:
            try:
                self.task(name)
            except (NotApplicable, NotFound) as error:
                refused[name] = error.message
        return [name for name in names if name not in refused]

    def agent(self, name: str, options: Mapping[str, Any] | None = None) -> Agent:
        """Return an agent by id, or by a reference with a scheme (`repo:…`).

        Args:
            name: The id or reference.
            options: The options of a run, with which the agent is configured.

        Raises:
            NotFound: The agent does not exist, or no plugin knows the scheme.
            MlereduxError: An option does not exist, or the options are invalid.
        """
        agent = self._agent(name)
        return agent if options is None else configured(agent, options)

    def _agent(self, name: str) -> Agent:
        if ":" not in name:
            return cast("Agent", self.get("agents", name))
        if provided_secrets():
            return self._find_agent(name)  # catalogues without these secrets must not find it here
        if name not in self._known_agents:
            agent = self._find_agent(name)
            self._known_agents[name] = self._known_agents[agent.reference or name] = agent
        return self._known_agents[name]

    def _find_agent(self, reference: str) -> Agent:
        agent: Agent | None = self.call_scheme("find_agent", reference)
        if agent is None:
            from mleredux._core.plugins.directory import installing

            scheme = reference.partition(":")[0]
            hint = installing("schemes", scheme) or "See `mleredux list agents`."
            raise NotFound(f"No plugin supports agents with the scheme {scheme!r}.", hint=hint)
        return agent

    def call_scheme(self, function: str, reference: str, *arguments: str) -> Any:
        """Call a function of a reference's `Scheme`, by name; return None if the scheme has none or is unknown.

        Raises:
            PluginError: Several plugins register the scheme, so none is used.
        """
        scheme, colon, _ = reference.partition(":")
        if not colon or scheme not in self.entries("schemes"):
            from mleredux._core.plugins.former import call

            return call(self.hook(f"mleredux_{function}"), reference, *arguments)
        implementation = getattr(self.get("schemes", scheme), function)
        return implementation(reference, *arguments) if implementation is not None else None

    def forget_references(self) -> None:
        """Resolve references that may change, such as branches, again on next use."""
        self._known_agents = {name: agent for name, agent in self._known_agents.items() if name == agent.reference}

    def grader(self, name: str) -> Grader:
        """Return a grader by id."""
        return cast("Grader", self.get("graders", name))

    def sandbox(self, name: str) -> Sandbox:
        """Return a sandbox by id."""
        return cast("Sandbox", self.get("sandboxes", name))

    def executor(self, name: str) -> Executor:
        """Return an executor by id."""
        return cast("Executor", self.get("executors", name))

    def tool(self, name: str) -> Tool:
        """Return a tool by id."""
        return cast("Tool", self.get("tools", name))

    def capabilities(self) -> dict[str, Capabilities]:
        """Return the capabilities of each sandbox, by id; sandboxes that can't be loaded are skipped."""
        from mleredux._core.plugins.capabilities import capabilities_from

        by_id = {}
        for name, entry in self.entries("sandboxes").items():
            with contextlib.suppress(PluginError):  # the problem is recorded with the plugin
                declared = "builds" in entry.ref.summary
                by_id[name] = capabilities_from(entry.ref.summary) if declared else self.sandbox(name).capabilities
        return by_id

    def problems(self) -> list[str]:
        """Return the problems of the plugins checked so far, one sentence each."""
        return list(dict.fromkeys(message for plugin in self.plugins for message in plugin.errors))

    def clashes(self) -> list[str]:
        """Return a sentence for each unused name that several plugins claim, and for each plugin that grades."""
        for kind in KINDS:
            self.entries(kind)
        named = [plugin.clash for plugin in self.plugins if plugin.clash]
        graders = [implementation.plugin_name for implementation in self.hook("mleredux_grade").get_hookimpls()]
        first = [f"Plugin {name!r} may grade instead of the task's grader." for name in graders if name != "core"]
        return list(dict.fromkeys([*named, *self._duplicates.values(), *first]))

    def _registered(self, plugin: Plugin, kind: str) -> Iterable[Entry]:
        if plugin.state in ("blocked", "failed"):
            return
        if plugin.index is not None and kind not in plugin.dynamic:
            yield from (Entry(ref.id, kind, plugin, ref) for ref in plugin.index[kind])
            return
        yield from self.declared(plugin, kind)

    def declared(self, plugin: Plugin, kind: str) -> list[Entry]:
        """Return the objects that a plugin's own hook registers."""
        from mleredux._core.plugins.loader import call
        from mleredux._core.plugins.summaries import check_and_summarise

        if not self.load_plugin(plugin):
            return []
        entries = []
        with without_output(), _reporting(plugin, kind):
            for items in call(plugin, self.manager, f"mleredux_register_{kind}"):
                for item in items or ():
                    with _reporting(plugin, kind):  # an invalid declaration does not affect the plugin's others
                        summary = {} if isinstance(item, Ref) else check_and_summarise(kind, item)
                        ref = item if isinstance(item, Ref) else Ref(summary["id"], None, summary)
                        entries.append(Entry(ref.id, kind, plugin, ref, None if ref is item else item))
        return entries

    def _refuse(self, kind: str, name: str) -> NoReturn:
        from mleredux._core.plugins.directory import suggestion

        hint = suggestion(kind, name, list(self.entries(kind)), self.plugins)
        raise NotFound(f"There is no {SINGULAR[kind]} {name!r}.", hint=hint)

    def resolved(self, entry: Entry) -> Any:
        """Import and check the object of an entry.

        Raises:
            PluginError: The object can't be imported, or does not match its entry.
        """
        from mleredux._core.plugins.loader import imported

        if entry.object is not None:
            return entry.object
        if entry.ref.target is None:
            declared = {item.id: item for item in self.declared(entry.plugin, entry.kind)}
            if entry.id not in declared:
                loaded = entry.plugin.state == "loaded"
                raise PluginError(
                    f"Plugin {entry.plugin.name!r} no longer registers {SINGULAR[entry.kind]} {entry.id!r}.",
                    hint=f"Set mleredux_dynamic = ({entry.kind!r},) in {entry.plugin.target} if it differs by user."
                    if loaded
                    else " ".join(entry.plugin.errors),
                )
            return declared[entry.id].object or self.resolved(declared[entry.id])
        return imported(entry)

    def _report_duplicate(self, entry: Entry, other: Entry) -> None:
        message = (
            f"The {SINGULAR[entry.kind]} id {entry.id!r} is registered by plugin {other.plugin.name!r} "
            f"({other.plugin.distribution or other.plugin.target}) and by {entry.plugin.name!r} "
            f"({entry.plugin.distribution or entry.plugin.target}); rename one, or block one with --block NAME."
        )
        self._duplicates[entry.kind, entry.id] = message
        entry.plugin.errors.append(message)


@contextlib.contextmanager
def _reporting(plugin: Plugin, kind: str) -> Iterator[None]:
    """Record any exception as an invalid declaration of a plugin."""
    try:
        yield
    except BaseException as error:  # a declaration may be any object
        if is_interrupt(error):
            raise
        plugin.report(
            f"Plugin {plugin.name!r} has an invalid declaration of {kind} ({one_line(error)}); "
            f"fix mleredux_register_{kind} in {plugin.target}."
        )


_current: Catalogue | None = None


def current() -> Catalogue:
    """Return the catalogue of this process, created on first use."""
    global _current
    if _current is None:
        _current = Catalogue()
    return _current


def set_current(catalogue: Catalogue | None) -> None:
    """Replace the catalogue of this process, as the command line does according to its options."""
    global _current
    _current = catalogue
