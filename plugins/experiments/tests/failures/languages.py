# ruff: noqa: E501 - one log a line
"""What programs in many languages print when they fail, with the cause and the exit code of the agent.

They were written by who had just changed the rules after the part `last` of the logs, as further cases of the same
families; at first 53 of 62 were right. So they test that families hold, and say nothing about unknown ones.
"""

from __future__ import annotations


def loop(message: str) -> str:
    """The log of an agent that gets the same message, with another number for NN, until its steps are used up."""
    steps = (message.replace("NN", str(11 * step)) for step in range(5))
    again = "\n".join(f"$ run\n{shown}\nTrying again.\nI fix it.\nline\nmore text" for shown in steps)
    return f"{again}\nMaximum number of steps (5) reached"


CASES: dict[str, tuple[str, str, int]] = {
    "perl-undef": ("code-error", '$ perl x.pl\nCan\'t call method "fetch" on an undefined value at x.pl line 12.\n', 2),
    "perl-syntax": (
        "code-error",
        'syntax error at t.pl line 3, near "my "\nExecution of t.pl aborted due to compilation errors.\n',
        255,
    ),
    "perl-die-file": (
        "code-error",
        "Cannot open data/tran.csv: No such file or directory at lib/Load.pm line 8, <STDIN> line 1.\n",
        2,
    ),
    "perl-warn-only": (
        "no-submission",
        "Use of uninitialized value $x in addition (+) at f.pl line 5.\nUse of uninitialized value in print at f.pl line 6, <$f> line 3.\ndone\n",
        0,
    ),
    "perl-missing": (
        "packages",
        "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) (@INC entries checked: /etc/perl) at a.pl line 1.\nBEGIN failed--compilation aborted at a.pl line 1.\n",
        2,
    ),
    "perl-oom": ("memory", "reading\nOut of memory in perl:util:safesysrealloc\n", 1),
    "tcl": ("code-error", 'invalid command name "foo"\n    while executing\n"foo bar"\n    (file "a.tcl" line 3)\n', 1),
    "tcl-div": ("code-error", 'divide by zero\n    while executing\n"expr {1 / 0}"\n    invoked from within\n"x"\n', 1),
    "tcl-pkg": (
        "packages",
        'can\'t find package csv\n    while executing\n"package require csv"\n    (file "a.tcl" line 1)\n',
        1,
    ),
    "lua": (
        "code-error",
        "lua: fit.lua:12: attempt to index a nil value (local 'row')\nstack traceback:\n\tfit.lua:12: in main chunk\n\t[C]: in ?\n",
        1,
    ),
    "ruby": ("code-error", "fit.rb:3:in `<main>': undefined method `foo' for nil:NilClass (NoMethodError)\n", 1),
    "ruby-gem": (
        "packages",
        "<internal:/usr/lib/ruby/rubygems/core_ext/kernel_require.rb>:85:in `require': cannot load such file -- daru (LoadError)\n\tfrom fit.rb:1:in `<main>'\n",
        1,
    ),
    "sqlite-parse": ("code-error", "Parse error near line 3: no such table: trian\n", 1),
    "sqlite-rt": ("code-error", "Runtime error near line 4: UNIQUE constraint failed: t.id (19)\n", 1),
    "sqlite-old": ("code-error", 'Error: near "selct": syntax error\n', 1),
    "psql": (
        "code-error",
        'psql:load.sql:3: ERROR:  relation "train" does not exist\nLINE 1: select * from train;\n',
        3,
    ),
    "mysql": ("code-error", "ERROR 1146 (42S02) at line 1: Table 'db.train' doesn't exist\n", 1),
    "duckdb": ("code-error", 'Binder Error: Referenced column "planname" not found in FROM clause!\n', 1),
    "javac": (
        "code-error",
        "src/Main.java:12: error: cannot find symbol\n    foo();\n    ^\n  symbol:   method foo()\n1 error\n",
        1,
    ),
    "javac-pkg": (
        "packages",
        "Main.java:3: error: package org.apache.commons.csv does not exist\nimport org.apache.commons.csv.CSVParser;\n                             ^\n1 error\n",
        1,
    ),
    "tsc": ("code-error", "src/fit.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n", 2),
    "msvc": ("code-error", "fit.cpp(12): error C2065: 'x': undeclared identifier\n", 2),
    "kotlinc": ("code-error", "fit.kt:3:13: error: type mismatch: inferred type is String but Int was expected\n", 1),
    "scala": ("code-error", "fit.scala:3: error: not found: value foo\n  foo\n  ^\none error found\n", 1),
    "ghc": ("code-error", "fit.hs:3:5: error: [GHC-88464]\n    Variable not in scope: foo\n", 1),
    "go": ("code-error", "# command-line-arguments\n./fit.go:5:2: undefined: foo\n", 1),
    "gcc": (
        "code-error",
        "fit.c: In function 'main':\nfit.c:3:5: error: 'x' undeclared (first use in this function)\n",
        1,
    ),
    "cargo-build": (
        "code-error",
        'error[E0382]: borrow of moved value: `v`\n --> src/main.rs:4:20\n  |\nerror: could not compile `m` (bin "m") due to 1 previous error\n',
        101,
    ),
    "cargo-net": (
        "packages",
        "    Updating crates.io index\nerror: failed to get `polars` as a dependency of package `m v0.1.0`\n\nCaused by:\n  download of config.json failed\n",
        101,
    ),
    "cargo-ver": (
        "packages",
        'error: failed to select a version for the requirement `ndarray = "^0.99"`\ncandidate versions found which didn\'t match: 0.16.1\n',
        101,
    ),
    "gradle": (
        "packages",
        "* What went wrong:\nCould not resolve all files for configuration ':compileClasspath'.\n> Could not resolve org.jetbrains:foo:1.0.\n> No cached version of org.jetbrains:foo:1.0 available for offline mode.\n",
        1,
    ),
    "mvn": (
        "packages",
        "[ERROR] Failed to execute goal on project m: Could not resolve dependencies for project a:m:jar:1.0: Could not find artifact org.x:y:jar:1.0 in central -> [Help 1]\n",
        1,
    ),
    "gomod": (
        "packages",
        "fit.go:4:2: no required module provides package gonum.org/v1/gonum/mat; to add it:\n\tgo get gonum.org/v1/gonum/mat\n",
        1,
    ),
    "sbatch": (
        "environment",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
        1,
    ),
    "srun2": (
        "environment",
        "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)\n",
        1,
    ),
    "salloc": ("environment", "salloc: fatal: Could not establish a configuration source\n", 1),
    "slurm-time": (
        "time",
        "slurmstepd: error: *** JOB 123 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
        1,
    ),
    "srun-oom": (
        "memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory\n",
        1,
    ),
    "srun-task": (
        "code-error",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: x\nsrun: error: n1: task 0: Exited with exit code 1\n',
        1,
    ),
    "systemd": ("environment", "Failed to start transient scope unit: Connection timed out\n", 1),
    "systemctl": ("environment", "Failed to connect to system bus: No such file or directory\n", 1),
    "curl-ollama": (
        "llm-api",
        "curl: (7) Failed to connect to localhost port 11434: Connection refused\nno answer from the LLM\n",
        7,
    ),
    "curl-v1": (
        "llm-api",
        "$ curl -sf http://10.0.0.2:8000/v1/chat/completions\ncurl: (52) Empty reply from server\nagent.sh: the model did not respond\n",
        52,
    ),
    "curl-data": (
        "downloads",
        "$ curl -O https://example.com/d.zip\ncurl: (6) Could not resolve host: example.com\n",
        6,
    ),
    "step-limit": ("no-submission", "did this\nexit_cost: step limit of 30 reached\n", 0),
    "cost-limit": ("llm-api", "Exit due to cost limit\nexit_cost\n", 0),
    "loop-go": ("debug-loop", loop("./fit.go:5:2: undefined: fooNN"), 0),
    "loop-ts": (
        "debug-loop",
        loop("src/fit.ts(NN,5): error TS2322: Type 'string' is not assignable to type 'number'."),
        0,
    ),
    "loop-perl": ("debug-loop", loop('Can\'t call method "fetch" on an undefined value at x.pl line NN.'), 0),
    "loop-tcl": ("debug-loop", loop('can\'t read "nNN": no such variable\n    while executing\n"puts $nNN"'), 0),
    "loop-sql": ("debug-loop", loop("Error: in prepare, no such column: aNN.b"), 0),
    "loop-julia": (
        "debug-loop",
        loop("ERROR: LoadError: UndefVarError: `fooNN` not defined in `Main`\nStacktrace:\n [1] top-level scope"),
        0,
    ),
    "loop-r": ("debug-loop", loop("Error in eval(expr) : object 'xNN' not found\nExecution halted"), 0),
    "loop-psql": ("debug-loop", loop("ERROR:  column t.planNN does not exist\nLINE 1: select"), 0),
    "react": (
        "code-error",
        "Thought: fit\nAction: python\nObservation: Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'\n",
        1,
    ),
    "php-mem": (
        "memory",
        "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes) in /a.php on line 3\n",
        255,
    ),
    "php-die": (
        "code-error",
        "PHP Fatal error:  Uncaught DivisionByZeroError: Division by zero in /a.php:3\nStack trace:\n#0 {main}\n  thrown in /a.php on line 3\n",
        255,
    ),
    "awk": ("code-error", "awk: fit.awk:3: (FILENAME=train.csv FNR=2) fatal: division by zero attempted\n", 2),
    "octave": ("code-error", "error: 'foo' undefined\nerror: called from\n    fit at line 3 column 1\n", 1),
    "csharp": (
        "code-error",
        "Unhandled exception. System.FormatException: Input string was not in a correct format.\n   at System.Number.Throw()\n",
        134,
    ),
    "elixir": ("code-error", "** (ArithmeticError) bad argument in arithmetic expression\n    fit.exs:3: (file)\n", 1),
    "invalid-after-import": (
        "invalid-submission",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nModuleNotFoundError: No module named 'prophet'\n\nUse means.\nlooks good\n",
        0,
    ),
}
"""By name: the cause in the words of `logs/README.md`, the log, the exit code."""
