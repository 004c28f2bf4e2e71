"""`python -m mleredux` is the command `mleredux`."""

from mleredux._core.cli import program

program()
