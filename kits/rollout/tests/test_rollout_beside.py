"""Files next to a script: all that it names belong to it, in any spelling, or are mentioned as left out."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mleredux_rollout import find_beside
from mleredux_rollout.beside import LEFT_OUT, MAX_NAMED

PYTHON = {
    "a name": "open({name!r})",
    "a path": "open('conf/../' + {name!r})",
    "after a slash": "open(os.environ['MLEREDUX_AGENT_DIR'] + '/' + {name!r})",
    "within a path": "open({slashed!r})",
    "bytes": "open({name_bytes!r})",
    "a formatted path": "f'{{HERE}}/' f{name!r}" + ".replace('{{', '{{')",
    "a joined path": "HERE.joinpath({name!r}).read_text()",
    "a tuple": "for name in ({name!r}, 'other'): pass",
    "parts": "NAME = {head!r}\nopen(HERE / (NAME + {tail!r}))",
}
SHELL = {
    "an argument": "cat {quoted}",
    "a path": '"$MLEREDUX_AGENT_DIR"/{quoted} --fast',
    "an option": "x --config={quoted}",
}
NAMES = st.text(st.characters(exclude_characters="/\0{}", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda name: (
        len(os.fsencode(name)) < 200
        and name not in {".", "..", "solve.py", "solve.sh", *LEFT_OUT}
        and name.partition(".")[0] != "submission"
        and name != "requirements.txt"
    )
)


@pytest.mark.parametrize(("language", "form"), [("py", form) for form in PYTHON] + [("sh", form) for form in SHELL])
@settings(max_examples=25, deadline=None)
@given(NAMES)
@example("Makefile")
@example("vocab")
@example("data[1].csv")
@example(" leading.csv")
@example("two  blanks.csv")
@example("submission_config.json")
@example("submissions.txt")
@example("it's.txt")
@example("a,b;c=d.txt")
@example("100%.txt")
@example(".hidden")
@example("\u6570\u636e.csv")
@example("*.csv")
def test_any_name_of_a_file_is_recognized(
    tmp_path_factory: pytest.TempPathFactory, language: str, form: str, name: str
) -> None:
    if language == "sh" and "'" in name:
        return  # `'it'"'"'s'` is a name in parts, which only shells can join
    folder = tmp_path_factory.mktemp("agent")
    (folder / name).write_bytes(b"\0")
    script = folder / f"solve.{language}"
    parts = {"head": name[:1], "tail": name[1:], "slashed": f"conf/{name}", "quoted": shlex.quote(name)}
    text = (PYTHON if language == "py" else SHELL)[form].format(name=name, name_bytes=os.fsencode(name), **parts)
    script.write_text(f"#!/bin/sh\n{text}\n" if language == "sh" else text)
    assert name in find_beside(script).names
    (folder / name).write_bytes(bytes(MAX_NAMED + 1))
    beside = find_beside(script)
    assert (name in beside.names) != (name in beside.remarks), "a large file is left out with a sentence"


CASES: dict[str, tuple[dict[str, str], set[str]]] = {
    "comments of shells name nothing": (
        {
            "solve.sh": "# replaces b.py\n#!/x c.sh\n  ## and c.sh\necho '#' d.txt\n",
            "b.py": "",
            "c.sh": "",
            "d.txt": "",
        },
        {"solve.sh", "c.sh", "d.txt"},
    ),
    "comments of R name nothing": (
        {"solve.R": "# like util.R\nsource('own.R')\n", "util.R": "", "own.R": ""},
        {"solve.R", "own.R"},
    ),
    "settings have no comments": ({"solve.py": "open('a.txt')", "a.txt": "# b.txt\n", "b.txt": ""}, {"*"}),
    "a text of Python is no comment": ({"solve.py": "TITLE = '# Title'\nopen('b.txt')", "b.txt": ""}, {"*"}),
    "a module of Cython": ({"solve.py": "import pyximport, fast", "fast.pyx": ""}, {"*"}),
    "make reads its file": ({"solve.sh": "make all", "Makefile": "all:\n\tpython fit.py", "fit.py": ""}, {"*"}),
    "make from Python": ({"solve.py": "run(['make', '-j2'])", "makefile": "", "Makefile.bak": ""}, {"makefile"}),
    "a module in a Makefile": (
        {"solve.sh": "make", "Makefile": "a:\n\tpython -m fit", "fit.py": "", "a.py": ""},
        {"Makefile", "fit.py"},
    ),
    "an executable": (
        {"solve.sh": '"$MLEREDUX_AGENT_DIR/tool" x', "tool": "#!/bin/sh\ncat table.csv", "table.csv": ""},
        {"*"},
    ),
    "settings that name a file": ({"solve.py": "open('c.yaml')", "c.yaml": "vocab: vocab.txt", "vocab.txt": ""}, {"*"}),
    "settings that name a class": (
        {"solve.py": "open('c.yaml')", "c.yaml": "_target_: b.Net", "b.py": "", "c.py": ""},
        {"c.yaml", "b.py"},
    ),
    "settings named as the script": ({"solve.py": "Path(__file__).with_suffix('.toml')", "solve.toml": ""}, {"*"}),
    "settings named after the script": ({"solve.py": "open(__file__ + '.json')", "solve.py.json": ""}, {"*"}),
    "numbered files": (
        {"solve.py": "open(f'{HERE}/fold_{i}.csv')", "fold_1.csv": "", "fold_2.csv": "", "a.csv": ""},
        {"fold_1.csv", "fold_2.csv"},
    ),
    "numbered files by %": (
        {"solve.py": "open('fold_%02d.csv' % i)", "fold_01.csv": "", "fold.csv": ""},
        {"fold_01.csv"},
    ),
    "numbered files by format": ({"solve.py": "open('fold_{:02d}.csv'.format(i))", "fold_01.csv": ""}, {"*"}),
    "numbered files by +": ({"solve.py": "open('fold_' + str(i) + '.csv')", "fold_01.csv": ""}, {"*"}),
    "numbered files in a shell": (
        {"solve.sh": "cat part_$i.csv part-${i}.csv", "part_1.csv": "", "part-2.csv": ""},
        {"*"},
    ),
    "a pattern": ({"solve.py": "glob.glob(f'{HERE}/fold_*.csv')", "fold_01.csv": "", "other.csv": ""}, {"fold_01.csv"}),
    "a pattern of data": ({"solve.py": "glob.glob(f'{DATA}/*.csv')", "train.csv": ""}, set()),
    "any name": ({"solve.py": "open(f'{DATA}/{name}.csv')", "train.csv": ""}, set()),
    "an object of a module": ({"solve.py": "pkgutil.resolve_name('b:y')", "b.py": "", "y.py": ""}, {"b.py"}),
    "an inner object": ({"solve.py": "pkgutil.resolve_name('b.c:y')", "b/c.py": "", "y.py": ""}, {"b"}),
    "an object by path": ({"solve.py": "pydoc.locate('b.y')", "b.py": "", "y.py": ""}, {"b.py"}),
    "an object that is served": ({"solve.py": "run(['uvicorn', 'b:app'])", "b.py": "", "app.py": ""}, {"b.py"}),
    "an option like -m": ({"solve.py": "run(['x', '--model'])", "odel.py": "", "model.py": ""}, set()),
    "a package's own module": (
        {"solve.py": "import p", "p/__init__.py": "from .inner import z", "p/inner.py": "", "inner.py": ""},
        {"p"},
    ),
    "a package's own name": (
        {"solve.py": "import p", "p/__init__.py": "from . import inner", "p/inner.py": "", "inner.py": ""},
        {"p"},
    ),
    "a deeper package": (
        {"solve.py": "import p", "p/q/a.py": "from ..b import x\nfrom .c import y", "b.py": "", "c.py": ""},
        {"p"},
    ),
    "a package's loader": ({"solve.py": "import p", "p/a.py": "import_module('.b', __package__)", "b.py": ""}, {"p"}),
    "beyond a package": (
        {"solve.py": "import p", "p/a.py": "from ..b import x", "b.py": "", "c.py": ""},
        {"p", "b.py"},
    ),
    "absolute in a package": ({"solve.py": "import p", "p/a.py": "from b import x", "b.py": ""}, {"*"}),
    "relative at the top": ({"solve.py": "from .b import x", "b.py": ""}, {"*"}),
    "an earlier submission": (
        {"solve.py": "to_csv('submission.csv')", "submission.csv": "", "submission.csv.gz": ""},
        set(),
    ),
    "a program named submission": ({"solve.py": "run(['python', 'submission.py'])", "submission.py": ""}, {"*"}),
}


@pytest.mark.parametrize("case", CASES)
def test_files_and_modules_that_belong_to_a_script(tmp_path: Path, case: str) -> None:
    files, expected = CASES[case]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    script = next(iter(files))
    every = {name.partition("/")[0] for name in files}
    assert find_beside(tmp_path / script).names == (every if expected == {"*"} else {script, *expected})


def test_a_pattern_that_matches_too_much_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "solve.py").write_text("open(f'{HERE}/fold_{i}.csv')")
    for number in range(101):
        (tmp_path / f"fold_{number}.csv").touch()
    beside = find_beside(tmp_path / "solve.py")
    assert beside.names == {"solve.py"} and beside.remarks.keys() == {"fold_*.csv"}
    (tmp_path / "fold_100.csv").unlink()
    assert len(find_beside(tmp_path / "solve.py").names) == 101
    (tmp_path / "fold_7.csv").write_bytes(bytes(MAX_NAMED + 1))
    assert find_beside(tmp_path / "solve.py").remarks.keys() == {"fold_*.csv"}
