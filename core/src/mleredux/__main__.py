"""The command `mleredux`, as `python -m mleredux`."""

from mleredux._core.cli import program

if __name__ == "__main__":
    program()
