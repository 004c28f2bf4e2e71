"""Count the source files of mleredux and its plugins that a plain run executes in the command's own process.

`python benchmarks/executed_files.py [--list] [--] [ARGUMENT…]` profiles `mleredux run digits --agent baseline`, or the
command of the arguments, in separate folders, and prints the number of files by distribution.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
RUN = ("run", "digits", "--agent", "baseline")


def executed_files(arguments: tuple[str, ...]) -> set[Path]:
    """Return the files below the repository with a function, method or class that a command executes.

    Bodies of classes count, because imports are work, too; files that only import and assign do not.
    """
    executed: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            executed.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        from mleredux._core.cli.root import main

        sys.argv = ["mleredux", *arguments]
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    paths = {Path(code.co_filename) for code in executed}
    return {path for path in paths if path.is_relative_to(REPOSITORY) and "src" in path.parts and path.suffix == ".py"}


def by_distribution(paths: set[Path]) -> dict[str, list[str]]:
    """Return the paths within each distribution, the largest distribution first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        distribution, _, module = str(path.relative_to(REPOSITORY)).partition("/src/")
        groups[distribution].append(module)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def main() -> None:
    """Print the number of files, in total and by distribution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the files, too")
    parser.add_argument("arguments", nargs="*", default=RUN, help="the command in place of a plain run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mleredux-executed-") as folder:
        arguments = tuple(options.arguments)
        if arguments == RUN:
            arguments += ("--runs-dir", f"{folder}/runs")
        groups = by_distribution(executed_files(arguments))
    print(f"{sum(map(len, groups.values()))} files", file=sys.stderr)
    for distribution, modules in groups.items():
        print(f"{len(modules):4}  {distribution}", file=sys.stderr)
        for module in modules if options.list else ():
            print(f"      {module}", file=sys.stderr)


if __name__ == "__main__":
    main()
