"""What went wrong between us and Kaggle, as sentences for the person who must act."""

from __future__ import annotations

from typing import Any

from mleredux.errors import DataError

SITE = "https://www.kaggle.com"
_AGAIN = "Run the same command again: what was downloaded is kept, and it goes on from there."


class Refusal(Exception):
    """Why something can't be had, as plain data that a child process can report.

    Args:
        kind: A key of `_SENTENCES`.
        facts: What the sentence needs; nothing secret.
    """

    def __init__(self, kind: str, **facts: Any) -> None:
        super().__init__(kind)
        self.kind, self.facts = kind, facts


_SENTENCES: dict[str, tuple[str, str]] = {
    "not-installed": (
        "Getting {competition} from Kaggle needs the package kaggle, which is not installed.",
        "Install it with `pip install 'mleredux-competition-mlebench[kaggle]'`, or get the files "
        "from {page}/data by hand and name them with --from.",
    ),
    "not-importable": (
        "The package kaggle can't be imported ({reason}).",
        "Install it anew with `pip install --upgrade 'mleredux-competition-mlebench[kaggle]'`.",
    ),
    "other-version": (
        "The installed package kaggle {version} is not one this works with ({reason}).",
        "Install it anew with `pip install --upgrade 'mleredux-competition-mlebench[kaggle]'`.",
    ),
    "no-credentials": (
        "Kaggle gives {competition} to its users only, and no credentials were found.",
        "Make an API token at {site}/settings/api and put it into KAGGLE_API_TOKEN or ~/.kaggle/access_token, or run "
        "`kaggle auth login` (KAGGLE_USERNAME with KAGGLE_KEY, and kaggle.json, work too); or get the files from "
        "{page}/data by hand and name them with --from.",
    ),
    "token-refused": (
        "Kaggle does not know the access token in {source}, or it has expired.",
        "Make a new one at {site}/settings/api.",
    ),
    "unauthorized": (
        "Kaggle does not accept the credentials (401).",
        "Make new ones at {site}/settings/api.",
    ),
    "forbidden": (
        "Kaggle does not give {competition} to this account (403): its rules have to be accepted first.",
        "Accept them at {page}/rules (where there is a button to join or to submit late, press it; some competitions "
        "want a verified phone number), then run the same command again.",
    ),
    "not-found": (
        "Kaggle has no {what} of {competition} (404).",
        "Look at {page}/data; where Kaggle no longer offers the files, name a copy of them with --from.",
    ),
    "throttled": (
        "Kaggle asks to come back later (429), also after {tries} tries.",
        "Wait some minutes. " + _AGAIN,
    ),
    "wait-too-long": (
        "Kaggle asks to come back in {minutes} minutes (429).",
        _AGAIN,
    ),
    "server-error": (
        "Kaggle answers with an error ({status}), also after {tries} tries.",
        "Its state is told at https://status.kaggle.com. " + _AGAIN,
    ),
    "bad-status": (
        "Kaggle answers with status {status}, which is not expected.",
        "Look at {page}, and update with `pip install --upgrade 'mleredux-competition-mlebench[kaggle]'`.",
    ),
    "unreachable": (
        "Kaggle can't be reached ({reason}).",
        "Look at the network and at HTTPS_PROXY, then run the same command again; or name files that are already here "
        "with --from.",
    ),
    "broken-off": (
        "The download of {competition} broke off {tries} times without getting on, at {done} of {total} bytes.",
        _AGAIN,
    ),
    "no-archive": (
        "What Kaggle sent for {competition} is no archive but {type}.",
        "Look at {page}/data, whether it can be downloaded there.",
    ),
    "damaged": (
        "The archive of {competition} came damaged twice ({reason}).",
        "Try again later, or get the files from {page}/data by hand and name them with --from.",
    ),
    "no-room": (
        "The disk of {folder} is full.",
        "Make room, or name another place with --data-dir. " + _AGAIN,
    ),
    "unwritable": (
        "{folder} can't be written ({reason}).",
        "Name another place with --data-dir.",
    ),
    "no-scores": (
        "Kaggle's leaderboard of {competition} has no scores.",
        "The leaderboard that ships with the task is used.",
    ),
    "unforeseen": (
        "Getting {competition} from Kaggle ended in something unforeseen ({reason}).",
        "Get the files from {page}/data by hand and name them with --from.",
    ),
}


def as_error(refusal: Refusal, competition: str) -> DataError:
    """The refusal as an error of the family."""
    message, hint = _SENTENCES[refusal.kind]
    facts = {"competition": competition, "site": SITE, "page": f"{SITE}/c/{competition}", **refusal.facts}
    return DataError(message.format_map(facts), hint=hint.format_map(facts))
