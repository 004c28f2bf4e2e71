"""Downloads from a server that breaks off, throttles, changes its files and can't send parts."""

from __future__ import annotations

import email.utils
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from mleredux_competition_mlebench.kaggle.patience import _SENTENCES, Patience, Refusal, as_error, retry_after
from mleredux_competition_mlebench.kaggle.transfer import Download

sys.path.insert(0, str(Path(__file__).parent))
from fake_kaggle import FakeKaggle

CONTENT = random.Random(0).randbytes(3_000_000)


@pytest.fixture
def kaggle() -> Iterator[FakeKaggle]:
    with FakeKaggle({"x": CONTENT}) as fake:
        yield fake


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def patience(pauses: list[float]) -> Patience:
    return Patience(tries=4, sleep=pauses.append)


@pytest.fixture
def download(kaggle: FakeKaggle, patience: Patience, tmp_path: Path) -> Callable[[], Download]:
    def make() -> Download:
        def ask() -> requests.Response:
            response = requests.get(f"{kaggle.storage}/x/bundle.zip?X-Goog-Signature=1", stream=True)
            response.raise_for_status()
            return response

        return Download(ask, tmp_path / "x.zip", patience)

    return make


def ranges(kaggle: FakeKaggle) -> list[str]:
    return [headers["Range"] for _, _, headers, _ in kaggle.requests if "Range" in headers]


def test_a_whole_file_leaves_nothing_beside_it(download: Callable[[], Download], tmp_path: Path) -> None:
    one = download()
    one.run()
    assert (tmp_path / "x.zip").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]
    import hashlib

    assert one.md5 == hashlib.md5(CONTENT).hexdigest(), "what the storage tells of its file"


def test_a_broken_connection_goes_on_at_the_next_byte(
    download: Callable[[], Download], kaggle: FakeKaggle, tmp_path: Path
) -> None:
    kaggle.trouble.cut_after.extend([1_000_003, 999_999])
    download().run()
    assert (tmp_path / "x.zip").read_bytes() == CONTENT
    assert ranges(kaggle) == ["bytes=1000003-", "bytes=2000002-"]


def test_another_process_goes_on_where_the_first_was_killed(
    download: Callable[[], Download], kaggle: FakeKaggle, tmp_path: Path
) -> None:
    class Killed(BaseException):
        pass

    def progress(done: int, _total: int | None) -> None:
        if done > 1_000_000:
            raise Killed

    first = download()
    first.progress = progress
    with pytest.raises(Killed):
        first.run()
    assert not first.target.exists()
    had = first.part.stat().st_size
    download().run()
    assert (tmp_path / "x.zip").read_bytes() == CONTENT
    assert ranges(kaggle) == [f"bytes={had}-"]


def test_bytes_of_another_version_are_thrown_away(
    download: Callable[[], Download], kaggle: FakeKaggle, patience: Patience, tmp_path: Path
) -> None:
    kaggle.trouble.cut_after.extend([1_000_000, 0, 0, 0, 0])
    with pytest.raises(Refusal, match="broken-off"):
        download().run()
    kaggle.trouble.cut_after.clear()
    kaggle.archives["x"] = CONTENT[::-1]
    download().run()
    assert (tmp_path / "x.zip").read_bytes() == CONTENT[::-1]


def test_a_server_that_cannot_send_parts_sends_all_again(
    download: Callable[[], Download], kaggle: FakeKaggle, tmp_path: Path
) -> None:
    kaggle.ranges = False
    kaggle.trouble.cut_after.append(2_000_000)
    download().run()
    assert (tmp_path / "x.zip").read_bytes() == CONTENT


def test_bytes_without_a_record_of_their_version_are_not_used(
    download: Callable[[], Download], kaggle: FakeKaggle, tmp_path: Path
) -> None:
    (tmp_path / "x.zip.part").write_bytes(b"?" * 1000)
    download().run()
    assert (tmp_path / "x.zip").read_bytes() == CONTENT
    assert ranges(kaggle) == []


def test_a_download_that_never_gets_on_ends(
    download: Callable[[], Download], kaggle: FakeKaggle, pauses: list[float]
) -> None:
    kaggle.trouble.cut_after.extend([500_000, *[0] * 20])
    with pytest.raises(Refusal) as refusal:
        download().run()
    assert refusal.value.kind == "broken-off"
    assert refusal.value.facts["done"] == 500_000
    assert refusal.value.facts["total"] == len(CONTENT)
    assert len(pauses) == 3, "four tries in a row"


def test_a_full_disk_is_told_as_such(
    download: Callable[[], Download], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def full(path: Path, mode: str = "r", *args: object, **options: object) -> object:
        return real(Path("/dev/full") if mode == "ab" else path, mode, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(Refusal) as refusal:
        download().run()
    assert refusal.value.kind == "no-room"
    assert str(tmp_path) in str(as_error(refusal.value, "x"))


def respond(status: int, body: bytes = b"", *, redirected: bool = False, **headers: str) -> Callable[[], None]:
    def question() -> None:
        response = requests.Response()
        response.status_code, response._content = status, body
        response.history = [requests.Response()] if redirected else []
        response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        raise requests.HTTPError(response=response)

    return question


@pytest.mark.parametrize(("status", "kind"), [(401, "unauthorized"), (403, "forbidden"), (404, "not-found")])
def test_a_clear_no_is_not_asked_again(patience: Patience, pauses: list[float], status: int, kind: str) -> None:
    with pytest.raises(Refusal, match=kind):
        patience.ask(respond(status, b'{"code": 7, "message": "Accept the rules."}'))
    assert pauses == []


@pytest.mark.parametrize("body", [b"", b"<Error><Code>ExpiredToken</Code></Error>", b"[]", b'{"message": ""}', b"null"])
def test_a_403_without_kaggles_word_or_of_storage_is_asked_again(
    patience: Patience, pauses: list[float], body: bytes
) -> None:
    with pytest.raises(Refusal, match="server-error"):
        patience.ask(respond(403, body))
    with pytest.raises(Refusal, match="server-error"):
        patience.ask(respond(403, b'{"message": "Anonymous caller"}', redirected=True))
    assert len(pauses) == 2 * (patience.tries - 1)


def test_an_empty_archive_is_named(patience: Patience, pauses: list[float]) -> None:
    with pytest.raises(Refusal, match="no-archive"):
        patience.ask(respond(416))
    assert pauses == []


def test_pauses_are_as_long_as_told(patience: Patience, pauses: list[float]) -> None:
    with pytest.raises(Refusal, match="throttled"):
        patience.ask(respond(429, Retry_After="17"))
    assert pauses == [17, 17, 17]


def test_pauses_grow_where_nothing_is_told(patience: Patience, pauses: list[float]) -> None:
    with pytest.raises(Refusal, match="server-error"):
        patience.ask(respond(503))
    assert pauses == [1, 2, 4]


def test_hours_are_not_waited(patience: Patience, pauses: list[float]) -> None:
    with pytest.raises(Refusal) as refusal:
        patience.ask(respond(429, Retry_After="7200"))
    assert pauses == []
    assert "in 120 minutes" in str(as_error(refusal.value, "x"))


def test_retry_after_may_be_a_date() -> None:
    response = requests.Response()
    response.headers["Retry-After"] = email.utils.formatdate(time.time() + 30, usegmt=True)
    told = retry_after(response)
    assert told is not None
    assert 27 < told <= 30
    response.headers["Retry-After"] = "soon"
    assert retry_after(response) is None


def test_a_server_that_is_not_there(patience: Patience) -> None:
    with FakeKaggle() as gone:
        address = gone.endpoint
    with pytest.raises(Refusal, match="unreachable"):
        patience.ask(lambda: requests.get(address, timeout=5))


@pytest.mark.parametrize("kind", _SENTENCES)
def test_every_refusal_is_a_sentence_and_says_what_to_do(kind: str) -> None:
    names = "reason version source what tries minutes status done total type folder"
    error = as_error(Refusal(kind, **dict.fromkeys(names.split(), "7")), "some-competition")
    assert error.message.endswith(".")
    assert error.hint is not None
    assert error.hint.endswith(".")
    assert "{" not in str(error)
