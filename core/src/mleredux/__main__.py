"""The command `mleredux`, also as `python -m mleredux`. Before it imports anything else, it handles signals."""

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


if __name__ == "__main__":
    program()
