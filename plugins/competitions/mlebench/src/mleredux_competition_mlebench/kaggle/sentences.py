"""Error messages for failures of Kaggle downloads."""

from __future__ import annotations

from typing import Any

from mleredux.errors import DataError

SITE = "https://www.kaggle.com"
_AGAIN = "Run the same command again to resume the download."


class Refusal(Exception):
    """The reason for a failure, as plain data that a child process can report.

    Args:
        kind: A key of `_SENTENCES`.
        facts: The message's values; no secrets.
    """

    def __init__(self, kind: str, **facts: Any) -> None:
        super().__init__(kind)
        self.kind, self.facts = kind, facts


_SENTENCES: dict[str, tuple[str, str]] = {
    "not-installed": (
        "Downloading {competition} from Kaggle requires the package kaggle, which is not installed.",
        "Install it with `pip install 'mleredux-competition-mlebench[kaggle]'`, or get the files "
        "from {page}/data manually and pass them with --from.",
    ),
    "not-importable": (
        "The package kaggle can't be imported ({reason}).",
        "Reinstall it with `pip install --upgrade 'mleredux-competition-mlebench[kaggle]'`.",
    ),
    "other-version": (
        "The installed version {version} of the package kaggle is not supported ({reason}).",
        "Reinstall it with `pip install --upgrade 'mleredux-competition-mlebench[kaggle]'`.",
    ),
    "no-credentials": (
        "Downloading {competition} requires a Kaggle account, but no credentials were found.",
        "Create an API token at {site}/settings/api and put it into KAGGLE_API_TOKEN or ~/.kaggle/access_token, or run "
        "`kaggle auth login` (KAGGLE_USERNAME with KAGGLE_KEY, and kaggle.json, work too); or get the files from "
        "{page}/data manually and pass them with --from.",
    ),
    "token-refused": (
        "Invalid or expired Kaggle access token in {source}.",
        "Create a new one at {site}/settings/api.",
    ),
    "unauthorized": (
        "Kaggle does not accept the credentials (401).",
        "Create new ones at {site}/settings/api.",
    ),
    "forbidden": (
        "Kaggle denies this account access to {competition} (403): accept its rules first.",
        "Accept them at {page}/rules (press the button to join or to submit late, if there is one; some competitions "
        "require a verified phone number), then run the same command again.",
    ),
    "not-found": (
        "Kaggle has no {what} of {competition} (404).",
        "Check {page}/data; if Kaggle no longer offers the files, pass a copy of them with --from.",
    ),
    "throttled": (
        "Kaggle limits the request rate (429), even after {tries} tries.",
        "Wait a few minutes. " + _AGAIN,
    ),
    "wait-too-long": (
        "Kaggle limits the request rate (429); retry in {minutes} minutes.",
        _AGAIN,
    ),
    "server-error": (
        "Kaggle returns an error ({status}), even after {tries} tries.",
        "See https://status.kaggle.com. " + _AGAIN,
    ),
    "bad-status": (
        "Kaggle returned the unexpected status {status}.",
        "Check {page}, and update with `pip install --upgrade 'mleredux-competition-mlebench[kaggle]'`.",
    ),
    "unreachable": (
        "Kaggle can't be reached ({reason}).",
        "Check the network and HTTPS_PROXY, then run the same command again; or pass existing local files with --from.",
    ),
    "broken-off": (
        "The download of {competition} was interrupted {tries} times without progress, at {done} of {total} bytes.",
        _AGAIN,
    ),
    "no-archive": (
        "Kaggle sent {type} instead of an archive for {competition}.",
        "Check at {page}/data whether it can be downloaded.",
    ),
    "redirected": (
        "Kaggle redirects the download of {competition} to an address that is not followed: {reason}.",
        "Check HTTPS_PROXY, or get the files from {page}/data manually and pass them with --from.",
    ),
    "damaged": (
        "The archive of {competition} was damaged twice ({reason}).",
        "Try again later, or get the files from {page}/data manually and pass them with --from.",
    ),
    "no-room": (
        "The disk of {folder} is full.",
        "Free disk space, or choose another folder with --data-dir. " + _AGAIN,
    ),
    "unwritable": (
        "Cannot write to {folder} ({reason}).",
        "Choose another folder with --data-dir.",
    ),
    "no-scores": (
        "Kaggle's leaderboard of {competition} has no scores.",
        "The leaderboard that ships with the task is used.",
    ),
    "unforeseen": (
        "Downloading {competition} from Kaggle failed unexpectedly ({reason}).",
        "Get the files from {page}/data manually and pass them with --from.",
    ),
}


def as_error(refusal: Refusal, competition: str) -> DataError:
    """Return the refusal as a `DataError`."""
    message, hint = _SENTENCES[refusal.kind]
    facts = {"competition": competition, "site": SITE, "page": f"{SITE}/c/{competition}", **refusal.facts}
    return DataError(message.format_map(facts), hint=hint.format_map(facts))
