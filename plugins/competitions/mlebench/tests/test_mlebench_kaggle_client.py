"""The official client against a Kaggle on loopback: signing in, refusals, damaged archives, leaderboards."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mleredux._core.data.medals import read_leaderboard
from mleredux._core.data.progress import Step, listening
from mleredux.errors import DataError
from mleredux_competition_mlebench.kaggle import KaggleData, KaggleLeaderboard
from mleredux_competition_mlebench.kaggle.download import ENDPOINT_VARIABLE
from mleredux_support.commands import mleredux

sys.path.insert(0, str(Path(__file__).parent))
from fake_kaggle import KEY, TOKEN, USER, FakeKaggle, zip_of

pytestmark = pytest.mark.slow
Way = Callable[[Path, pytest.MonkeyPatch], None]


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    folder = tmp_path / "packed"
    (folder / "images").mkdir(parents=True)
    (folder / "train.csv").write_text("id,y\n" + "".join(f"{i},{i % 2}\n" for i in range(50_000)))
    (folder / "images" / "1.bin").write_bytes(bytes(range(256)) * 999)
    return zip_of(folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without credentials."""
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    (home / ".kaggle").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def kaggle(archive: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKaggle]:
    with FakeKaggle({"some-competition": archive}) as fake:
        monkeypatch.setenv(ENDPOINT_VARIABLE, fake.endpoint)
        yield fake


@pytest.fixture
def signed_in(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    raw = tmp_path / "data" / "raw"
    raw.mkdir(parents=True)
    return raw


def fetch(raw: Path, competition: str = "some-competition", md5: str | None = None) -> list[Step]:
    steps: list[Step] = []
    with listening(steps.append):
        KaggleData(competition, md5)(raw)
    return steps


def variable(_home: Path, env: pytest.MonkeyPatch) -> None:
    env.setenv("KAGGLE_API_TOKEN", TOKEN)


def token_file(home: Path, _env: pytest.MonkeyPatch) -> None:
    (home / ".kaggle" / "access_token").write_text(TOKEN + "\n")


def name_and_key(_home: Path, env: pytest.MonkeyPatch) -> None:
    env.setenv("KAGGLE_USERNAME", USER)
    env.setenv("KAGGLE_KEY", KEY)


def key_file(home: Path, _env: pytest.MonkeyPatch) -> None:
    (home / ".kaggle" / "kaggle.json").write_text(json.dumps({"username": USER, "key": KEY}))


def key_file_elsewhere(home: Path, env: pytest.MonkeyPatch) -> None:
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "kaggle.json").write_text(json.dumps({"username": USER, "key": KEY}))
    env.setenv("KAGGLE_CONFIG_DIR", str(home / "elsewhere"))


def browser_login(home: Path, _env: pytest.MonkeyPatch) -> None:
    content = {"refresh_token": "refresh-of-the-test", "username": USER, "scopes": []}
    (home / ".kaggle" / "credentials.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    "way",
    [variable, token_file, name_and_key, key_file, key_file_elsewhere, browser_login],
    ids=lambda way: way.__name__,
)
def test_every_way_to_give_credentials(
    way: Way,
    kaggle: FakeKaggle,
    home: Path,
    raw: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    way(home, monkeypatch)
    fetch(raw)
    assert sorted(path.name for path in raw.iterdir()) == ["images", "train.csv"]
    printed = capfd.readouterr()
    assert printed.out == printed.err == "", "the client prints to nobody"


def test_without_credentials_it_says_where_to_make_some(kaggle: FakeKaggle, raw: Path) -> None:
    with pytest.raises(
        DataError, match=r"no credentials were found.*kaggle\.com/settings/api.*KAGGLE_API_TOKEN"
    ) as error:
        fetch(raw)
    assert "https://www.kaggle.com/c/some-competition/data" in str(error.value)
    assert list(raw.iterdir()) == []


def test_an_expired_token_is_named_by_where_it_is_not_by_what_it_is(
    kaggle: FakeKaggle, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", "kgl-old-one")
    with pytest.raises(DataError, match="Invalid or expired Kaggle access token in KAGGLE_API_TOKEN") as error:
        fetch(raw)
    assert "kgl-old-one" not in str(error.value)


def test_a_wrong_key(kaggle: FakeKaggle, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGGLE_USERNAME", USER)
    monkeypatch.setenv("KAGGLE_KEY", "wrong-key")
    with pytest.raises(DataError, match=r"does not accept the credentials \(401\)") as error:
        fetch(raw)
    assert "wrong-key" not in str(error.value)


@pytest.mark.usefixtures("signed_in")
def test_rules_that_are_not_accepted(kaggle: FakeKaggle, raw: Path) -> None:
    kaggle.unaccepted.add("some-competition")
    with pytest.raises(DataError, match=r"https://www\.kaggle\.com/c/some-competition/rules.*same command again"):
        fetch(raw)
    assert kaggle.calls["DownloadDataFiles"] == 1


@pytest.mark.usefixtures("signed_in")
def test_a_competition_that_is_gone(kaggle: FakeKaggle, raw: Path) -> None:
    with pytest.raises(DataError, match=r"Kaggle has no data for gone-competition \(404\)\."):
        fetch(raw, "gone-competition")


@pytest.mark.usefixtures("signed_in")
def test_throttling_is_waited_for_and_breaks_are_mended(kaggle: FakeKaggle, raw: Path) -> None:
    kaggle.trouble.statuses.append((429, {"Retry-After": "2"}))
    kaggle.trouble.statuses.append((502, {}))
    kaggle.trouble.cut_after.append(10_000)
    since = time.monotonic()
    steps = fetch(raw)
    assert time.monotonic() - since >= 3
    assert any(step.stage.startswith("waiting 2 s") for step in steps)
    assert steps[-1].done == steps[-1].total == sum(path.stat().st_size for path in raw.rglob("*.*"))
    assert "bytes=10000-" in [headers.get("Range") for _, _, headers, _ in kaggle.requests]


@pytest.mark.usefixtures("signed_in")
def test_an_archive_that_came_damaged_is_fetched_once_more(kaggle: FakeKaggle, raw: Path, archive: bytes) -> None:
    kaggle.trouble.flip_at.append(500)
    steps = fetch(raw, md5=hashlib.md5(archive).hexdigest())
    assert any("the archive was damaged" in step.stage and step.lasting for step in steps)
    assert sorted(path.name for path in raw.iterdir()) == ["images", "train.csv"]


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("tells_md5", [True, False], ids=["told MD5", "CRC in the zip"])
def test_an_archive_that_comes_damaged_twice(kaggle: FakeKaggle, raw: Path, tells_md5: bool) -> None:
    kaggle.tells_md5 = tells_md5
    kaggle.trouble.flip_at.extend([500, 500])
    with pytest.raises(DataError, match="was damaged twice"):
        fetch(raw)
    assert list(raw.rglob("*")) == []


@pytest.mark.usefixtures("signed_in")
def test_what_is_no_archive_at_all(kaggle: FakeKaggle, raw: Path) -> None:
    kaggle.archives["some-competition"] = b"half a zip"
    with pytest.raises(DataError, match="not a complete zip"):
        fetch(raw)


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize(
    "place", ["http://169.254.169.254", "https://10.0.0.1", "https://localhost.localdomain.invalid", "https://[::1]:1"]
)
def test_a_redirect_into_a_private_network_is_not_followed(kaggle: FakeKaggle, raw: Path, place: str) -> None:
    kaggle.storage = place
    with pytest.raises(DataError, match=r"redirects the download of .* that is not followed") as error:
        fetch(raw)
    assert "Signature" not in str(error.value)


@pytest.mark.usefixtures("signed_in")
def test_an_archive_packed_anew_is_used_with_a_word_on_it(kaggle: FakeKaggle, raw: Path) -> None:
    steps = fetch(raw, md5="0" * 32)
    assert any("repacked" in step.stage and step.lasting for step in steps)
    assert (raw / "train.csv").exists()


@pytest.mark.usefixtures("signed_in")
def test_files_from_elsewhere_come_too(kaggle: FakeKaggle, raw: Path) -> None:
    other = f"{kaggle.storage}/some-competition/other.zip?X-Goog-Signature=1"
    KaggleData("some-competition", others=(("other.zip", other),))(raw)
    assert (raw / "other.zip").read_bytes() == kaggle.archives["some-competition"]


@pytest.mark.usefixtures("signed_in")
def test_leaderboards_are_read_page_by_page(kaggle: FakeKaggle, raw: Path) -> None:
    private = [str(1 - i / 10) for i in range(10)]
    kaggle.boards["some-competition"] = ([*private, ""], ["0.25", "0.125"])
    KaggleLeaderboard("some-competition")(raw / "board.csv")
    assert read_leaderboard(raw / "board.csv") == [float(score) for score in private], "the final board, without blanks"
    KaggleLeaderboard("some-competition", public=True)(raw / "board.csv")
    assert read_leaderboard(raw / "board.csv") == [0.25, 0.125]
    assert "team" not in (raw / "board.csv").read_text()


def test_without_the_package_it_names_the_extra(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install 'mleredux-competition-mlebench\[kaggle\]'"):
        fetch(raw)


def test_kaggle_itself_cannot_be_reached(home: Path, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeKaggle() as gone:
        monkeypatch.setenv(ENDPOINT_VARIABLE, gone.endpoint)
    monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
    with pytest.raises(DataError, match=r"Kaggle can't be reached \(ConnectionError\)"):
        fetch(raw)


SET = ("spaceship-titanic", "playground-series-s3e18")


def doctor(data: Path) -> tuple[int, dict[str, str]]:
    """What `mleredux doctor` finds on the tasks, by area and name."""
    told = mleredux("doctor", *SET, "--data-dir", str(data), "--json")
    return told.code, {f"{one['area']}/{one['name']}": one["message"] for one in told.json["findings"]}


def test_a_whole_set_is_asked_for_at_once_and_nothing_is_downloaded(
    home: Path, tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeKaggle(dict.fromkeys(SET, archive)) as kaggle:
        monkeypatch.setenv(ENDPOINT_VARIABLE, kaggle.endpoint)
        code, found = doctor(tmp_path / "data")
        assert code == 3 and "no credentials were found. The same applies to" in found[f"data/{SET[0]}"]
        monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        kaggle.unaccepted.add(SET[1])
        code, found = doctor(tmp_path / "data")
        assert code == 3 and "accept its rules first" in found[f"data/{SET[1]}"]
        assert found["data/tasks"] == "Data or the right to download it: 1 of 2 tasks."
        kaggle.unaccepted.clear()
        code, found = doctor(tmp_path / "data")
        assert code == 0 and "there is room for the others" in found["disk/disk"]
    assert not (tmp_path / "data").exists() or not list((tmp_path / "data").rglob("*.csv"))
