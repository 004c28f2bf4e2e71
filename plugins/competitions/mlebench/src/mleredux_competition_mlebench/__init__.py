"""The competitions of MLE-bench, by name; a declaration is imported when its task is used."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return the checks of `mleredux doctor` for competitions."""
    return [Ref("doctor kaggle", f"{__name__}.kaggle.doctor:command", {"title": "Check Kaggle credentials."})]


@hookimpl
def mleredux_register_tasks() -> Iterable[Ref]:
    """Register every competition in `facts.json` that has a declaration."""
    from mleredux_competition_mlebench.facts import PACKAGE, all_facts, module_name

    for name in all_facts():
        module = module_name(name)
        if (PACKAGE / "competitions" / module / "__init__.py").is_file():
            yield Ref(name, f"{__name__}.competitions.{module}:COMPETITION")
