"""The command line. One file a command, imported when it is used, so that `--help` costs next to nothing."""

from mleredux._core.cli.root import main, program

__all__ = ["main", "program"]
