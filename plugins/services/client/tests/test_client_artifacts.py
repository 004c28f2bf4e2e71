"""Artifacts: whole or not at all, resumed where they broke, and never outside their folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mleredux_client as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_client import AsyncClient, Client, Run
from mleredux_client.files import PARTIAL, Partial, target_of
from mleredux_client.pairs import check_stopped, each

BIG = bytes(range(256)) * 400
FILES = {
    "report.html": b"<h1>hi</h1>",
    "output/code/train.py": b"print(1)\n",
    "output/model.bin": BIG,
    "empty.txt": b"",
}


def listed(path: str, content: bytes, **more: Any) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {"path": path, "size": len(content), "sha256": digest, "producer": "agent", "media_type": "x/y", **more}


Serve = Callable[..., Run]


@pytest.fixture
def serve(fake: Any, client: Client) -> Serve:
    """`serve(files, cut=…)`: a run with these artifacts, an answer of which breaks after `cut` bytes."""

    def make(files: dict[str, bytes] = FILES, cut: int | None = None, tag: bool = True, **more: Any) -> Run:
        fake.serve("GET /v1/runs/run-1", fake.run_document())
        items = [listed(path, content, **more) for path, content in files.items()]
        fake.serve("GET /v1/runs/run-1/artifacts", {"items": items, "next": None})
        for path, content in files.items():
            fake.serve_file(f"/v1/runs/run-1/artifacts/{path}", content, cut=cut, tag=tag)
        return client.get_run("run-1")

    return make


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_artifacts_are_listed_read_and_looked_for(serve: Serve) -> None:
    run = serve()
    assert [file.path for file in run.artifacts] == list(FILES)
    assert [info.path for info in run.artifacts.list("*.py")] == ["output/code/train.py"]
    assert run.artifacts["report.html"].text() == "<h1>hi</h1>"
    assert run.artifacts["output/model.bin"].read() == BIG
    assert "report.html" in run.artifacts and "none" not in run.artifacts
    with pytest.raises(sdk.NotFound):
        run.artifacts["none"].read()


def test_a_run_is_downloaded_and_the_second_time_nothing_is_fetched_again(
    fake: Any, serve: Serve, tmp_path: Path
) -> None:
    run = serve()
    paths = run.artifacts.download(tmp_path / "new" / "here")
    assert tree(tmp_path / "new" / "here") == FILES
    assert [path.relative_to(tmp_path / "new" / "here").as_posix() for path in paths] == list(FILES)
    asked = len(fake.asked)
    run.artifacts.download(tmp_path / "new" / "here")
    assert len(fake.asked) == asked + 1
    (tmp_path / "new" / "here" / "report.html").write_bytes(b"<h1>ho</h1>")
    run.artifacts.download(tmp_path / "new" / "here")
    assert tree(tmp_path / "new" / "here") == FILES


def test_some_are_downloaded_by_a_pattern(serve: Serve, tmp_path: Path) -> None:
    run = serve()
    run.artifacts.download(tmp_path, pattern="output/*")
    assert set(tree(tmp_path)) == {"output/code/train.py", "output/model.bin"}
    with pytest.raises(sdk.NotFound, match=r"No artifact of run run-1 matches '\*\.png'"):
        run.artifacts.download(tmp_path, pattern="*.png")


def test_a_download_that_breaks_is_taken_up_where_it_broke(fake: Any, serve: Serve, tmp_path: Path) -> None:
    run = serve({"model.bin": BIG}, cut=30_000)
    run.artifacts.download(tmp_path)
    assert tree(tmp_path) == {"model.bin": BIG}
    ranges = [asked.headers.get("Range") for asked in fake.asked if asked.path.endswith("model.bin")]
    assert ranges == [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"]


def test_a_download_goes_on_in_another_process_where_the_first_one_ended(
    fake: Any, serve: Serve, tmp_path: Path
) -> None:
    run = serve({"model.bin": BIG})
    good = fake.routes["GET /v1/runs/run-1/artifacts/model.bin"]
    half = fake.answer(200, BIG, {}, cut=50_000)
    fake.fail("GET /v1/runs/run-1/artifacts/model.bin", half, fake.problem(500))
    with pytest.raises(sdk.ServerError):
        run.artifacts.download(tmp_path)
    assert [len(content) for content in tree(tmp_path).values()] == [50_000]
    assert not (tmp_path / "model.bin").exists(), "only whole files have their name"
    fake.routes["GET /v1/runs/run-1/artifacts/model.bin"] = good
    with Client(fake.url, "t") as another:
        another.get_run("run-1").artifacts.download(tmp_path)
    assert fake.asked[-1].headers["Range"] == "bytes=50000-"
    assert tree(tmp_path) == {"model.bin": BIG} and not (tmp_path / PARTIAL).exists()


def test_a_partial_file_of_other_bytes_is_noticed_and_fetched_anew(fake: Any, serve: Serve, tmp_path: Path) -> None:
    run = serve({"model.bin": BIG})
    fake.fail("GET /v1/runs/run-1/artifacts/model.bin", fake.answer(200, b"x" * len(BIG), {}, cut=1000), fake.broken)
    run.artifacts.download(tmp_path)
    assert tree(tmp_path) == {"model.bin": BIG}


def test_bytes_that_are_not_the_manifests_are_never_kept(fake: Any, serve: Serve, tmp_path: Path) -> None:
    run = serve({"model.bin": BIG}, sha256="0" * 64)
    with pytest.raises(sdk.Damaged, match=r"'model\.bin' does not match its hash"):
        run.artifacts.download(tmp_path)
    assert tree(tmp_path) == {}
    assert fake.times("GET /v1/runs/run-1/artifacts/model.bin") == 2


@pytest.mark.parametrize("status", [200, 206, 416])
def test_a_service_that_answers_a_range_with_something_else_is_not_trusted(
    fake: Any, serve: Serve, tmp_path: Path, status: int
) -> None:
    run = serve({"model.bin": BIG})
    name = "GET /v1/runs/run-1/artifacts/model.bin"
    wrong = {"Content-Range": f"bytes 5-{len(BIG) - 1}/{len(BIG)}"} if status == 206 else {}
    fake.fail(name, fake.answer(200, BIG, {}, cut=9000), fake.answer(status, BIG if status == 200 else BIG[5:], wrong))
    run.artifacts.download(tmp_path)
    assert tree(tmp_path) == {"model.bin": BIG}


def test_a_file_without_a_known_hash_is_downloaded_too(serve: Serve, tmp_path: Path) -> None:
    run = serve({"a/model.bin": BIG}, cut=40_000, sha256=None)
    run.artifacts.download(tmp_path / "all")
    assert tree(tmp_path / "all") == {"a/model.bin": BIG}
    assert run.artifacts["a/model.bin"].save(tmp_path / "one.bin").read_bytes() == BIG
    assert run.artifacts["a/model.bin"].save(tmp_path) == tmp_path / "model.bin"
    assert set(tree(tmp_path)) == {"all/a/model.bin", "model.bin", "one.bin"}


def test_a_service_that_always_breaks_at_the_same_byte_is_given_up(
    fake: Any, serve: Serve, tmp_path: Path, pauses: list[float]
) -> None:
    run = serve({"model.bin": BIG}, sha256=None, tag=False)
    fake.routes["GET /v1/runs/run-1/artifacts/model.bin"] = lambda _asked: fake.answer(200, BIG, {}, cut=10)
    with pytest.raises(sdk.Unreachable):
        run.artifacts.download(tmp_path)
    assert len(pauses) == 5 and tree(tmp_path) == {}


HOSTILE = [
    "../evil",
    "a/../../evil",
    "/etc/evil",
    "a//b",
    "./a",
    "a/.",
    "a/..",
    "",
    "a\0b",
    "link/evil",
    "link/sub/evil",
    f"{PARTIAL}/x",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_leave_the_folder_are_refused_before_anything_is_fetched(
    fake: Any, serve: Serve, tmp_path: Path, name: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    run = serve({"good.txt": b"good", name: b"evil"})
    with pytest.raises(sdk.UnsafePath):
        run.artifacts.download(tmp_path / "in")
    assert tree(tmp_path) == {}
    assert not any("artifacts/" in asked.path for asked in fake.asked)


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "report.html").symlink_to(tmp_path / "precious")
    serve({"report.html": b"new"}).artifacts.download(tmp_path / "in")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not (tmp_path / "in" / "report.html").is_symlink()


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b.c", "\\", "~", "C:", "\x00", "ü", PARTIAL]), max_size=5))
def test_no_name_leads_out_of_the_folder(parts: list[str]) -> None:
    folder = Path("/tmp/mleredux-nowhere")
    try:
        target = target_of(folder, "/".join(parts))
    except sdk.UnsafePath:
        return
    inside = os.path.normpath(target)
    assert inside.startswith(f"{folder}/") and inside == str(target)


@pytest.mark.parametrize("name", ["..", "a/../b", "", "a//b"])
def test_a_path_that_urls_do_not_keep_is_no_artifact(serve: Serve, name: str) -> None:
    with pytest.raises(sdk.UnsafePath):
        serve().artifacts[name]


def test_names_of_any_letters_find_their_file(serve: Serve, tmp_path: Path) -> None:
    odd = {"a b%20c?d#e+f&g.txt": b"1", "späße/😀.txt": b"2", "q\"uo'te\\x00.txt": b"3", "line\nbreak": b"4"}
    escaped = {"a\\\\b": b"5", "line\\nend": b"6", "\\xff\\u200b": b"7", "\\\\x41": b"8"}
    serve({**odd, **escaped}).artifacts.download(tmp_path)
    own = ("a\\b", "line\nend", "\udcff\u200b", "\\x41")
    assert tree(tmp_path) == odd | dict(zip(own, escaped.values(), strict=True))


def test_many_may_download_the_same_at_once(fake: Any, serve: Serve, tmp_path: Path) -> None:
    run = serve(cut=25_000)
    failed: list[BaseException] = []

    def fetch() -> None:
        try:
            run.artifacts.download(tmp_path)
        except BaseException as error:  # whatever it is, the test must see it
            failed.append(error)

    threads = [threading.Thread(target=fetch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and tree(tmp_path) == FILES and not (tmp_path / PARTIAL).exists()


def test_who_comes_second_writes_a_file_of_their_own(tmp_path: Path) -> None:
    keep, target = tmp_path / PARTIAL, tmp_path / "x"
    with Partial(target, "key", keep) as first:
        first.write(b"first")
        with Partial(target, "key", keep) as second:
            second.write(b"second")
            second.finish()
        assert target.read_bytes() == b"second"
        first.finish()
    assert target.read_bytes() == b"first" and [path.name for path in tmp_path.iterdir()] == ["x"]


def test_everything_comes_in_one_archive_which_is_whole_or_not_there(fake: Any, serve: Serve, tmp_path: Path) -> None:
    run = serve()
    name = "GET /v1/runs/run-1/archive"
    fake.routes[name] = lambda _asked: fake.answer(200, BIG, {}, chunked=True)
    fake.fail(name, fake.answer(200, BIG, {}, cut=700, chunked=True))
    assert run.artifacts.archive(tmp_path / "all.tar.gz").read_bytes() == BIG
    assert fake.asked[-1].query == {"format": ["tar.gz"]}
    run.artifacts.archive(tmp_path / "all", "zip", prefix="output/")
    assert fake.asked[-1].query == {"format": ["zip"], "prefix": ["output/"]}
    fake.fail(name, *[fake.answer(200, BIG, {}, cut=700, chunked=True)] * 9)
    with pytest.raises(sdk.Unreachable):
        run.artifacts.archive(tmp_path / "broken.zip")
    assert set(tree(tmp_path)) == {"all.tar.gz", "all"}
    with pytest.raises(sdk.UsageError, match=r"'all\.rar' is not a supported archive format"):
        run.artifacts.archive(tmp_path / "all.rar")


def test_the_same_without_waiting(fake: Any, serve: Serve, tmp_path: Path) -> None:
    serve(cut=25_000)

    async def download() -> None:
        async with AsyncClient(fake.url, "t") as client:
            run = await client.get_run("run-1")
            await asyncio.gather(*(run.artifacts.download(tmp_path) for _ in range(3)))
            assert [file.path async for file in run.artifacts] == list(FILES)
            assert await run.artifacts["report.html"].text() == "<h1>hi</h1>"
            fake.fail("GET /v1/runs/run-1/artifacts/output/model.bin", fake.problem(500))
            with pytest.raises(sdk.ServerError):
                await run.artifacts.download(tmp_path / "again")

    asyncio.run(download())
    assert {path: content for path, content in tree(tmp_path).items() if "again" not in path} == FILES


def test_what_goes_on_stops_when_something_else_failed() -> None:
    begun = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError("one failed")
        while True:
            check_stopped()
            time.sleep(0.001)

    with pytest.raises(ValueError, match="one failed"):
        each(work, range(9), 2)
    assert sorted(begun) == [0, 1]
