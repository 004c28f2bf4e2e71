"""`mleredux scripted-llm`."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import click


@click.command("scripted-llm")
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8089, show_default=True, help="Port; 0 chooses a free one."
)
@click.option("--key", help="The only API key that is accepted.  [default: any]")
@click.option("--check", is_flag=True, help="Validate the scenario without serving it.")
def command(scenario: Path, host: str, port: int, key: str | None, check: bool) -> None:
    """Serve a scripted language model that replies from a scenario file.

    It serves OpenAI's chat completions and responses, Anthropic's messages and Google's generateContent. Each call is
    logged as a line on stderr.
    """
    from mleredux_scripted_llm.local import ScriptedLlm
    from mleredux_scripted_llm.scenario import load_scenario

    loaded = load_scenario(scenario)
    if check:
        click.echo(f"{scenario} is valid: {len(loaded.rules)} rules.")
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    shown = 0
    with ScriptedLlm(loaded, host=host, port=port, key=key) as llm:
        click.echo(llm.url)
        while not stop.is_set():
            for call in llm.calls[shown:]:
                click.echo(f"{time.strftime('%H:%M:%S')} {call.line()}", err=True)
                shown += 1
            stop.wait(0.2)
