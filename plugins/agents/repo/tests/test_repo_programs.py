"""Programs as people write them: first lines, notebooks, modules and links beside them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mleredux_agent_repo.agents import agent_of
from mleredux_rollout import find_beside, notebook_runner
from mleredux_testing.pytest_plugin import NO_ENGINE

SUBMIT = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv\n'
CELLS = [
    "%matplotlib inline\nimport multiprocessing, sys\nimport beside",
    "%%time\nx = 5",
    "%%capture kept\nprint('hidden')",
    "y = (17\n  % 5)\ntext = '''\n%not magic\n!nor this\n'''\nprint('values', x, y, repr(text), repr(kept.stdout))",
    "def square(value):\n    return value * value\n\n"
    "with multiprocessing.Pool(2) as pool:\n    print(pool.map(square, [1, 2, 3]))",
    "import asyncio\nawait asyncio.sleep(0)\ndisplay({'shown': beside.NAME})\n"
    "get_ipython().run_line_magic('time', 'x')",
    "%run beside.py\nprint('by %run', NAME)",
    "%%writefile stale.py\nSTATE = 'written'",
    "import stale\nprint(stale.STATE)",
    "!echo from a shell $x\nnames = !echo a\nlen?",
    "%%bash\necho bash $((1 + 2))",
    "%%writefile written.txt\nnot { python",
    "for number in range(2):\n    !echo loop {number}\n'the last value'",
    "print(open('written.txt').read(), sys.argv[1:])",
    "import shutil, os\nshutil.copy(os.environ['MLEREDUX_DATA_DIR'] + '/sample_submission.csv', '.')",
    "os.rename('sample_submission.csv', 'submission.csv')\nexit()",
    "raise RuntimeError('after exit')",
]
EXPECTED = [
    r"values 5 2 '\n%not magic\n!nor this\n' 'hidden\n'",
    "[1, 4, 9]",
    "{'shown': 'a module'}",
    *("from a shell 5", "bash 3", "loop 0", "loop 1", "the last value"),
    "not { python",
    *("by %run a module", "written"),
]


def run(script: Path, *more: str) -> dict[str, object]:
    """The record of a run of a script on `wine`, with its log and what the command said."""
    command = [sys.executable, "-m", "mleredux", "run", "wine", "--agent", f"./{script.name}", "--json", *more]
    ended = subprocess.run(
        command, cwd=script.parent, env={**os.environ, **NO_ENGINE}, capture_output=True, text=True, timeout=300
    )
    assert ended.stdout, ended.stderr
    record: dict[str, object] = json.loads(ended.stdout)
    log = Path(str(record["path"]), "logs", "agent.log").read_text()
    return {**record, "log": log, "said": ended.stderr}


def write_notebook(path: Path, cells: list[str]) -> Path:
    made = [{"cell_type": "markdown", "source": ["# Text"]}]
    made += [{"cell_type": "code", "source": cell.splitlines(True)} for cell in cells]
    path.write_text(json.dumps({"cells": made}))
    return path


def test_a_notebook_runs_as_in_jupyter_and_is_kept_with_its_output(tmp_path: Path, mleredux_home: Path) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'a module'\n")
    (tmp_path / "stale.py").write_text("STATE = 'stale'\n")
    record = run(write_notebook(tmp_path / "my book.ipynb", CELLS), "-O", "args=--fast")
    log = str(record["log"])
    assert record["status"] == "done", log
    assert [line for line in EXPECTED if line not in log] == [] and "['--fast']" in log
    assert "hidden\n" not in log.replace(r"hidden\n", "")
    kept = json.loads(Path(str(record["path"]), "output", "logs", "my book.ipynb").read_text())
    assert kept["cells"][5]["outputs"][0]["text"] == ["[1, 4, 9]\n"]
    source = Path(str(record["path"]), "output", "code", "my book.ipynb")
    assert source.read_bytes() == (tmp_path / "my book.ipynb").read_bytes()


CODE = "print(6 * 7)"
FORMS = {
    "of version 3": {
        "nbformat": 3,
        "worksheets": [{"cells": [{"cell_type": "code", "language": "python", "input": CODE}]}],
    },
    "of version 3, with all fields": {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [
            {
                "metadata": {},
                "cells": [
                    {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["Title"]},
                    {
                        "cell_type": "code",
                        "collapsed": False,
                        "input": [CODE],
                        "language": "python",
                        "metadata": {},
                        "outputs": [{"output_type": "pyout", "prompt_number": 1, "text": ["1"]}],
                        "prompt_number": 1,
                    },
                ],
            }
        ],
    },
    "without metadata": {"metadata": None, "cells": [{"cell_type": "code", "source": CODE}]},
    "with empty metadata": {
        "metadata": {"kernelspec": None, "language_info": None},
        "cells": [{"cell_type": "code", "source": CODE, "metadata": {}}],
    },
    "of another machine's kernel": {
        "metadata": {"kernelspec": {"name": "conda-env-x-py", "language": "python", "display_name": "x"}},
        "cells": [{"cell_type": "raw", "source": "1 /"}, {"cell_type": "code", "source": [CODE], "outputs": [{}]}],
    },
}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("form", FORMS)
def test_notebooks_of_all_forms_run(tmp_path: Path, form: str, mark: str) -> None:
    (tmp_path / "book.ipynb").write_text(mark + json.dumps(FORMS[form], indent=1), newline="\r\n")
    command = [sys.executable, "-c", notebook_runner(), "book.ipynb"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "42\n"), ended.stderr


@pytest.mark.parametrize("missing", ["ipykernel", "nbclient"])
def test_without_a_kernel_ipython_runs_the_same_cells(tmp_path: Path, missing: str) -> None:
    ended = run_without(tmp_path, CELLS, missing)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [line for line in EXPECTED if line not in ended.stdout] == []


def test_a_notebook_that_is_stopped_ends_with_one_sentence(tmp_path: Path) -> None:
    write_notebook(tmp_path / "book.ipynb", ["print('started', flush=True)", "import time\ntime.sleep(600)"])
    command = [sys.executable, "-c", notebook_runner(), "book.ipynb"]
    with subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "started\n"
        os.killpg(program.pid, signal.SIGTERM)
        _, said = program.communicate(timeout=120)
    assert program.returncode == 1
    assert said.splitlines()[-1].endswith("Killed: the kernel was stopped or ran out of memory")
    assert "nbclient" not in said and "ipykernel" not in said, said


def test_without_ipython_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    ended = run_without(tmp_path, ["print(1)"], "nbclient", "IPython")
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr == (
        "book.ipynb needs nbclient and ipykernel, or IPython, which this environment lacks: "
        "install them, or convert it to a script.\n"
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "is not a notebook of version 4"),
        ("no json", "is not a notebook of version 4"),
        (
            '{"cells": [], "metadata": {"kernelspec": {"name": "ir", "language": "R"}}}',
            "the kernel ir is not installed",
        ),
    ],
)
def test_what_is_no_notebook_of_python_is_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "book.ipynb").write_text(content)
    ended = subprocess.run(
        [sys.executable, "-c", notebook_runner(), "book.ipynb"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 1 and sentence in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr


def run_without(folder: Path, cells: list[str], *missing: str) -> subprocess.CompletedProcess[str]:
    """Run a notebook in this environment as if it lacked packages."""
    (folder / "beside.py").write_text("NAME = 'a module'\n")
    (folder / "data").mkdir()
    (folder / "data" / "sample_submission.csv").write_text("id\n")
    write_notebook(folder / "book.ipynb", cells)
    hide = (
        f"import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda n: None if n in {missing} else find(n)\n"
    )
    runner = notebook_runner()
    command = [sys.executable, "-c", f"exec({hide!r})\nexec(compile({runner!r}, 'runner', 'exec'))", "book.ipynb"]
    env = {**os.environ, "MLEREDUX_DATA_DIR": str(folder / "data")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("name", "text", "log"),
    [
        ("solve.sh", "#!/usr/bin/env bash\nset -o pipefail\nlist=(a b)\necho ${#list[@]}\n" + SUBMIT, "2\n"),
        ("solve.sh", "#!/bin/bash -e\nfalse\necho never\n", ""),
        ("solve.sh", "list=(a b c)\necho ${#list[@]}\n" + SUBMIT, "3\n"),
        ("solve.sh", "#!/usr/bin/env -S bash -u\necho $undefined\n", None),
        ("solve.sh", "#!/opt/absent/bash\necho ${BASH_VERSION:+bash}\n" + SUBMIT, "bash\n"),
        ("solve", "#!/usr/bin/env python3\nimport sys; print(sys.prefix)\n", f"{sys.prefix}\n"),
        ("solve.pl", '#!/usr/bin/perl -w\nprint "perl\\n";\n', "perl\n"),
        ("solve.awk", "#!/usr/bin/awk -f\nBEGIN { print 6 * 7 }\n", "42\n"),
        ("solve.R", "#!/usr/bin/env Rscript-of-nobody\n1\n", "solve.R needs Rscript-of-nobody, which is not installed"),
    ],
)
def test_a_script_runs_by_its_first_line(
    tmp_path: Path, mleredux_home: Path, name: str, text: str, log: str | None
) -> None:
    (tmp_path / name).write_text(text)
    record = run(tmp_path / name)
    if log is None:
        assert "unbound variable" in str(record["log"])
    elif text.endswith("1\n"):
        assert log in str(record["log"]) and log in str(record["message"])
    else:
        assert record["log"] == log


def version(script: Path) -> str:
    return agent_of(f"repo:{script}").version


USES = {
    "import": ("import other", True),
    "in turn": ("import between", True),
    "star": ("from other import *", True),
    "relative": ("from . import other", True),
    "inside a function": ("def f():\n    import other as o", True),
    "import_module": ("import importlib as i\ni.import_module('other')", True),
    "__import__": ("__import__('oth' + 'er')", True),
    "computed": ("import importlib, os\nimportlib.import_module(os.environ['X'])", True),
    "computed name": ("import runpy\nfor n in 'other', 'x':\n    runpy.run_path(f'{n}.py')", True),
    "subprocess": ("import subprocess\nsubprocess.run(['python', HERE + '/other.py'])", True),
    "-m": ("import subprocess, sys\nsubprocess.run([sys.executable, '-u', '-m', 'other', '--x'])", True),
    "command": ("import os\nos.system('python -m other --x')", True),
    "another module": ("import json, os\nimport between_2", False),
    "in a docstring": ('"""Better than other.py."""', False),
    "in a comment": ("# see other.py", False),
    "images": ("import glob\nglob.glob(DATA + '/*.png')", False),
}


@pytest.mark.parametrize("use", USES)
def test_a_version_is_what_the_script_imports(tmp_path: Path, mleredux_home: Path, use: str) -> None:
    text, changes = USES[use]
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "between.py").write_text("import other")
    (tmp_path / "between_2.py").write_text("x = 1")
    (tmp_path / "other.py").write_text("x = 1")
    (tmp_path / "notes.csv").write_text("x")
    before = version(tmp_path / "a.py")
    (tmp_path / "other.py").write_text("x = 2")
    (tmp_path / "notes.csv").write_text("y")
    assert (version(tmp_path / "a.py") != before) is changes
    (tmp_path / "a.py").write_text(text + "\n")
    assert version(tmp_path / "a.py") != before


BESIDE = {
    "a package of packages": ("from lib.deep.tools import f", "lib/deep/tools.py", True),
    "a package after -m": ("subprocess.run((sys.executable, '-m', 'lib.two'))", "lib/two.py", True),
    "a folder on the path": ("import sys\nsys.path.append('src')\nimport mod", "src/mod/__init__.py", True),
    "a compiled module": ("import fast", "fast.cpython-311-x86_64-linux-gnu.so", True),
    "a configuration": ("open('config.yaml')", "config.yaml", True),
    "an earlier submission": ("table.to_csv('submission.csv')", "submission.csv", False),
    "a module of submissions": ("import submission", "submission.py", True),
    "a file in a folder": ("json.load(open('conf/settings.json'))", "conf/settings.json", True),
    "a file in a folder of a folder": ("(HERE / 'conf' / 'net.yaml').read_text()", "conf/nets/net.yaml", True),
    "a folder of data": ("read(DATA + '/images/{name}')", "images/1.png", False),
    "a folder that is not named": ("open(os.path.join(sys.argv[1], 'a.json'))", "conf/a.json", False),
    "a folder of submissions": ("table.to_csv('out/submission.csv')", "out/submission.csv", False),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_a_script_imports_or_reads_belongs_to_it_and_what_it_submits_does_not(tmp_path: Path, case: str) -> None:
    text, name, belongs = BESIDE[case]
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    (tmp_path / "solve.py").write_text(text)
    assert find_beside(tmp_path / "solve.py").names == {"solve.py", *([name.partition("/")[0]] if belongs else [])}


def test_what_a_script_names_and_is_left_out_is_said(tmp_path: Path, mleredux_home: Path) -> None:
    place = tmp_path / "agent"
    for name, size in {
        "conf/settings.json": 9,
        "weights/net.bin": 2 << 20,
        "templates/a.txt": 9,
        "model.bin": 2 << 20,
        "other/b.txt": 9,
        "submission.csv": 9,
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"1" * size)
    (place / "key.txt").symlink_to("/etc/passwd")
    (place / "solve.py").write_text(
        "import glob, os\nos.chdir(os.environ['MLEREDUX_AGENT_DIR'])\nprint(open('conf/settings.json').read(), "
        "*map(os.path.exists, ['weights/net.bin', 'model.bin', 'key.txt', 'submission.csv']), glob.glob('templates/*'))"
    )
    record = run(place / "solve.py")
    assert record["log"] == f"{'1' * 9} False False False False []\n"
    said = str(record["said"]).splitlines()
    left_out = " next to solve.py is left out: with a script, only programs"
    assert [line.partition(left_out)[0] for line in said if left_out in line] == ["model.bin", "templates", "weights"]
    assert sum("Specify the folder as the agent to include everything." in line for line in said) == 3
    assert [line.partition(" is skipped")[0] for line in said if "is skipped" in line] == ["key.txt"]
    before = version(place / "solve.py")
    (place / "conf" / "settings.json").write_text("{}")
    assert version(place / "solve.py") != before, "what a script reads is of its version"


CELLS_OF_IPYTHON = {
    "an assigned shell line": ("import mod\nfiles = !ls", True),
    "a shell line in a block": ("import mod\nif True:\n    !ls", True),
    "a continued shell line": ("import mod\n!ls \\\n  -la", True),
    "an assigned magic": ("import mod\nx = %timeit -o 1", True),
    "a question": ("import mod\nx?", True),
    "a timed cell": ("%%time\nimport mod", True),
    "a cell of bash": ("%%bash\npython mod.py && echo ($", True),
    "a cell of another language": ("%%R\nx <- f(", False),
    "a file that is written": ("%%writefile x.txt\nnot (python", False),
    "a program that is run": ("%run -i mod fast", True),
    "an extension": ("%load_ext mod", True),
    "a percent sign in a text": ("x = '''\n%d files\n''' % 3\nimport mod", True),
}


@pytest.mark.parametrize("case", CELLS_OF_IPYTHON)
def test_what_only_ipython_understands_makes_nothing_unclear(tmp_path: Path, case: str) -> None:
    cell, belongs = CELLS_OF_IPYTHON[case]
    for name in ("mod.py", "unrelated.py"):
        (tmp_path / name).write_text("")
    book = write_notebook(tmp_path / "book.ipynb", ["x = 1", cell])
    assert find_beside(book).names == {"book.ipynb", *(["mod.py"] if belongs else [])}
    book = write_notebook(tmp_path / "book.ipynb", [f"{cell}\n", "name = input()\n!ls", "__import__(name)"])
    assert find_beside(book).names == {"book.ipynb", "mod.py", "unrelated.py"}, "a module may be chosen when it runs"


def test_packages_requirements_and_named_settings_are_of_the_version(tmp_path: Path, mleredux_home: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "util.py").write_text("import deep")
    for name in ("deep.py", "conf.toml", "requirements.txt", "unrelated.toml"):
        (tmp_path / name).write_text("")
    (tmp_path / "solve.py").write_text("from lib.util import x\nopen(HERE / 'conf.toml')")
    assert find_beside(tmp_path / "solve.py").names == {"solve.py", "lib", "deep.py", "conf.toml", "requirements.txt"}
    (tmp_path / "run.sh").write_text('python "$MLEREDUX_AGENT_DIR/solve.py" && python -m deep\n')
    assert find_beside(tmp_path / "run.sh").names == find_beside(tmp_path / "solve.py").names | {"run.sh"}
    (tmp_path / "run.sh").write_text("for i in 1 2; do python stage_$i.py; done\n")
    assert find_beside(tmp_path / "run.sh").names > {"solve.py", "deep.py"}


def test_links_beside_a_script_are_followed_to_programs_or_left_out(tmp_path: Path, mleredux_home: Path) -> None:
    place, shared = tmp_path / "agent", tmp_path / "shared"
    (shared / "pkg").mkdir(parents=True)
    place.mkdir()
    (shared / "pkg" / "__init__.py").write_text("NAME = 'of a package'")
    (shared / "utils.py").write_text("NAME = 'shared'")
    (shared / "big").mkdir()
    (shared / "big" / "train.csv").write_text("x")
    for name, target in {
        "utils.py": "../shared/utils.py",
        "pkg": str(shared / "pkg"),
        "data": str(shared / "big"),
    }.items():
        (place / name).symlink_to(target)
    (place / "key.txt").symlink_to("/etc/passwd")
    (place / "gone").symlink_to("/nowhere")
    (place / "circle").symlink_to("circle")
    (place / "moved.py").symlink_to("absent.py")
    (place / "moved.json").symlink_to("sub/absent.json")
    (place / "solve.py").write_text(
        "import utils, pkg, os\nif 0:\n    import moved\n"
        "print(utils.NAME, pkg.NAME, *map(os.path.exists, ['key.txt', 'moved.json']))"
    )
    record = run(place / "solve.py")
    assert record["log"] == "shared of a package False False\n"
    remarks = [line for line in str(record["said"]).splitlines() if "is skipped" in line]
    skipped = dict(line.split(" is skipped: it links ") for line in remarks)
    outside, nowhere = f"outside {place}, to a file that is not an imported program.", "to a file that does not exist."
    nothing = dict.fromkeys(("circle", "gone", "moved.json", "moved.py"), nowhere)
    assert skipped == {"data": outside, "key.txt": outside, **nothing}
    assert "left out" not in str(record["said"])
    folder = agent_of(f"repo:{place}")
    assert folder.build.folder is not None
    assert sorted(path.name for path in folder.build.folder.path.iterdir()) == ["pkg", "solve.py", "utils.py"]
    before = version(place / "solve.py")
    (shared / "utils.py").write_text("NAME = 'changed'")
    assert version(place / "solve.py") != before
