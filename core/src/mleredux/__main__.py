"""Run the command `mleredux` as `python -m mleredux`."""

from mleredux._core.cli import program

program()
