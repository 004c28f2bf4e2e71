"""Environment variables that are not passed on to jobs of executors."""

from __future__ import annotations

import os
import re

from mleredux._core.plugins.catalogue import current

_SECRET = re.compile(r"MLEREDUX_\w*(KEY|TOKEN|SECRET|PASSWORD)")


def job_environment() -> dict[str, str]:
    """Return the environment of jobs: that of this process, without mleredux's own secrets and variables that plugins
    withhold (`mleredux_withheld`)."""
    for plugin in (catalogue := current()).plugins:
        if plugin.hooks is None:  # not in the index
            catalogue.load_plugin(plugin)
    withheld = {name for plugin in catalogue.plugins for name in plugin.withheld}
    return {name: value for name, value in os.environ.items() if name not in withheld and not _SECRET.fullmatch(name)}
