"""The final code of a run, as a command for a sandbox."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from mleredux.plugin.artifact import Run
from mleredux_rollout import notebook_runner

from mleredux_artifact_notes.solutions import entry_of, read_code

PREDICT = "predict.py"
"""The inference entry point by convention."""
RUNNER = """
code="$MLEREDUX_OUTPUT_DIR/code" file="${MLEREDUX_SUBMISSION##*/}" work="$MLEREDUX_SCRATCH_DIR/work"
mkdir -p "$work/working" "$work/submission" && cd "$work" || exit
ln -s "$MLEREDUX_DATA_DIR" input; ln -s "$MLEREDUX_OUTPUT_DIR"/*/ "$code"/* . 2>/dev/null
python "$code/$1" "$MLEREDUX_DATA_DIR" "$MLEREDUX_SUBMISSION" || exit
for made in "working/$file" "submission/$file" "$file" "../$file" "$code/$file"; do
    [ -e "$MLEREDUX_SUBMISSION" ] || [ ! -e "$made" ] || cp "$made" "$MLEREDUX_SUBMISSION"
done
"""
"""Runs a program of `output/code`, named by the first argument, in an environment with the folders that agents' code
uses."""
_NOTEBOOK = """import sys
from pathlib import Path

sys.argv.insert(1, str(Path(__file__).with_name({name!r})))
exec(compile({runner!r}, "notebook", "exec"))
"""
_PROGRAMS = (".py", ".ipynb", ".R", ".r", ".jl", ".sh", ".toml", ".yaml", ".yml", ".cfg", ".ini")
_MAX_CONFIG = 64 << 10
_OUTSIDE = re.compile(r"(?:(?<![\w})\]./~])|(?<=://)|(?<=:///))/(dev/shm|\w+)\b")
"""Matches an absolute path up to its first folder; URLs such as `file:///tmp/rows.db` contain one too."""
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")
"""Folders for programs' files, and shared memory."""
_TELLING = "?????????*"
"""Names that are unlikely to occur in a program by chance."""
_HOMES = re.compile(r"""getpw(?:nam|uid|all)|getent|["']~\w|expanduser\((?!\s*\w?["']~["'/])""")
"""Ways to refer to the home folder of the machine's user; in a run, `~` is a different folder."""
_YEARS = re.compile(r"(?<!\d)(?:19|20)\d\d(?:\d{4})?(?!\d)")
_FEWEST_PASTED = 10
_SYSTEM = frozenset({"bin", "dev", "etc", "lib", "opt", "proc", "sys", "usr"})
"""First folders in which programs store nothing."""
_MODELS = re.compile(r"openai|anthropic|litellm|gateway|https?:|requests|urllib|http\.client", re.IGNORECASE)


def entry_point(run: Run) -> tuple[str, bool]:
    """Find the file of `output/code` to run, and whether it is an inference entry point, which gets all output files.

    Raises:
        MlereduxError: There is no such file, or the choice is ambiguous.
    """
    files = read_code(run.output_dir / "code")
    if PREDICT in files:
        return PREDICT, True
    books = [name for name in files if name.endswith(".ipynb")]
    only_book = len(books) == 1 and not any(name.endswith(".py") for name in files)
    return books[0] if only_book else entry_of(files), False


def copy_programs(run: Run, output: Path, entry: str) -> str:
    """Copy programs and small settings but no data, since stored predictions or models do not count as code.

    Returns:
        The file to run; for a notebook, a script that executes it as Jupyter does.
    """
    code, files = output / "code", read_code(run.output_dir / "code")
    write_code({name: text for name, text in files.items() if _is_program(name, text)}, code)
    if not entry.endswith(".ipynb"):
        return entry
    script = entry.removesuffix(".ipynb") + ".py"
    (code / script).write_text(_NOTEBOOK.format(name=Path(entry).name, runner=notebook_runner()), encoding="utf-8")
    return script


def write_code(files: dict[str, str], folder: Path) -> None:
    """Write text files, by path, into a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", errors="replace")


def _is_program(name: str, text: str) -> bool:
    return name.endswith(_PROGRAMS) and (name.endswith(_PROGRAMS[:5]) or len(text) <= _MAX_CONFIG)


def needs(run: Run, *, isolated: bool) -> str | None:
    """Return the resources that programs of `output/code` use but a repetition lacks: files, or a language model."""
    if not isolated and (shared := shares(run.output_dir / "code")):
        return shared
    files = read_code(run.output_dir / "code")
    text = _text(files)
    if run.spec.network == "gateway" and _MODELS.search(text):
        return "a language model"
    names = {path.name for path in run.output_dir.rglob("*") if path.is_file() and not path.is_symlink()}
    names -= {Path(name).name for name, content in files.items() if _is_program(name, content)}
    named = (name for name in sorted(names) if not name.startswith("submission") and name in text)
    return next((f"the file {name}" for name in named), None)


def shares(folder: Path) -> str | None:
    """Return a location outside the run that programs without isolation use, and in which a cache could contain the
    original data.

    A program may name the location itself, or a file in a shared folder, such as a block of shared memory.
    """
    text = "\n".join(read_code(folder).values())
    outside = [f"/{name}" for name in _OUTSIDE.findall(text) if name not in _SYSTEM and Path("/", name).is_dir()]
    outside += ["the user's home"] if _HOMES.search(text) else []
    entries = (path for place in _SHARED for path in Path(place).glob(_TELLING))
    outside += [str(path.parent) for path in entries if path.name in text]
    return f"files in {outside[0]} as they were before the run" if outside else None


def names_dates(folder: Path, ids: Iterable[Sequence[str]]) -> bool:
    """Return whether programs mention years but few of the ids, unlike programs that contain pasted answers."""
    text = _text(read_code(folder))
    return bool(_YEARS.search(text)) and sum(any(part in text for part in key) for key in ids) < _FEWEST_PASTED


def _text(files: dict[str, str]) -> str:
    return "\n".join(text for name, text in files.items() if _is_program(name, text))


def copy_output(run: Run, output: Path) -> None:
    """Copy everything except submissions, for an inference entry point; links are not followed."""
    for source in sorted(run.output_dir.iterdir()):
        if source.is_symlink() or source.name.startswith("submission"):
            continue
        if source.is_dir():
            shutil.copytree(source, output / source.name, symlinks=True, dirs_exist_ok=True, ignore=_special)
        elif source.is_file():
            shutil.copyfile(source, output / source.name)


def _special(folder: str, names: list[str]) -> list[str]:
    """Return links and other entries that are neither a file nor a folder."""
    paths = (Path(folder, name) for name in names)
    return [path.name for path in paths if path.is_symlink() or not (path.is_file() or path.is_dir())]
