"""Checks of `mleredux doctor` for Kaggle competitions."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click
from mleredux.plugin.sandbox import Finding


@click.command("kaggle")
def command() -> list[Finding]:
    """Check whether Kaggle credentials exist; they are never shown."""
    if where := _place():
        return [Finding("credentials", True, f"Kaggle credentials found in {where}.")]
    message = "No Kaggle credentials found; only competitions whose data comes from Kaggle need them."
    remedy = (
        "Create a token on https://www.kaggle.com/settings for ~/.kaggle/access_token or KAGGLE_API_TOKEN; "
        "or prepare from your own files: `mleredux prepare TASK --from FOLDER_OR_ZIP`."
    )
    return [Finding("credentials", False, message, remedy)]


def _place() -> str | None:
    if os.environ.get("KAGGLE_API_TOKEN"):
        return "KAGGLE_API_TOKEN"
    if os.environ.get("KAGGLE_USERNAME") and os.environ.get("KAGGLE_KEY"):
        return "KAGGLE_USERNAME and KAGGLE_KEY"
    folders = [Path(os.environ["KAGGLE_CONFIG_DIR"])] if os.environ.get("KAGGLE_CONFIG_DIR") else []
    homes = (Path.home() / ".kaggle", Path.home() / ".config" / "kaggle")
    for path in (folder / name for folder in (*folders, *homes) for name in ("access_token", "kaggle.json")):
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size > 0:
                return str(path)
    return None
