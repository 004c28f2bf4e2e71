"""`python -m mleredux` is the command `mleredux`."""

from mleredux.cli import main

main()
