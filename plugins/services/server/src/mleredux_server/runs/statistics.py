"""The statistics of experiments: `mleredux_experiments.shared`, which is an extra of the server."""

from __future__ import annotations

from importlib.util import find_spec

from mleredux_server.protocol.problems import Problem


def require_statistics() -> None:
    """Check that `mleredux_experiments.shared` can be imported.

    Raises:
        Problem: It is not installed.
    """
    if find_spec("mleredux_experiments") is None:
        hint = "Its administrator installs mleredux-server[experiments]; budgets need nothing."
        raise Problem("not-found", "This server can't analyse experiments.", hint=hint)
