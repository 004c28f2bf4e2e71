"""The command line. One file per command, imported on use, so that `--help` is fast.

| modules | contents |
|---|---|
| `root`, `groups`, `context` | global options; groups that plugins extend; the plugins and backend of a command |
| `backend`, `local` | the interface of backends; the backend of this machine |
| `consent` | an agent's requests, and the question to the user |
| `commands` | the commands of core |
| `prepare_progress`, `run_progress`, `interrupts` | progress of data and of runs; Ctrl-C |
| `completion` | names that the shell completes |
| `options` | `--server`; options of many commands, and their types |
| `run_table`, `exit_codes` | results of runs, and their exit codes |
| `output` | tables for people, one JSON document for programs, growing logs |
"""

import gc
import os
import signal


def program() -> None:
    """Run the command line in a separate process: the entry point of the command `mleredux`."""
    handled = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _stop)
    gc.set_threshold(150_000, 20, 20)  # a command creates hardly any garbage
    # pydantic searches the entry points of every package for its own plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from mleredux._core.cli.root import main

    for number in handled:
        signal.signal(number, signal.default_int_handler)
    try:
        main()
    finally:
        gc.freeze()  # otherwise the garbage is collected once more at exit


def _stop(*_: object) -> None:
    """End at once, while modules are imported: some of them would change or ignore an exception."""
    os.write(2, b"\nStopped.\n")
    os._exit(130)
