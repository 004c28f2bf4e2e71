"""List, read and download the output files of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import httpx
from mleredux.models import Artifact

from mleredux_client import calls
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.pages import AsyncPager
from mleredux_client.answers import parse
from mleredux_client.errors import Damaged, MlereduxApiError, NotFound, UsageError
from mleredux_client.files import PARTIAL, Partial, is_downloaded, matches, target_of
from mleredux_client.frames import Listing
from mleredux_client.pairs import async_each, async_sleep, check_stopped
from mleredux_client.retries import Attempts

FORMATS = {".zip": "zip", ".tar": "tar", ".tar.gz": "tar.gz", ".tgz": "tar.gz"}


class AsyncArtifactFile:
    """One file of a run.

    Attributes:
        path: Path relative to the run's directory.
        info: Size, media type, hash and producer; None if only the path is known.
    """

    def __init__(self, http: AsyncHttp, run: str, path: str, info: Artifact | None = None) -> None:
        self._http, self._run, self.path, self.info = http, run, path, info
        self._url = f"/v1/runs/{calls.segment(run)}/artifacts/{calls.file_path(path)}"

    async def read(self) -> bytes:
        """Return its bytes, all at once."""
        response = await self._http.send(calls.Call("GET", self._url, headers={"Accept": "*/*"}))
        return response.content

    async def text(self) -> str:
        """Return its text; bytes that are not UTF-8 are replaced."""
        content = await self.read()
        return content.decode("utf-8", errors="replace")

    async def save(self, path: Path | str) -> Path:
        """Save it as a file with that name, or in an existing folder."""
        target = Path(path)
        if target.is_dir():
            target = target_of(target, self.path.rsplit("/", 1)[-1])
        with Partial(target) as part:
            return await self._fill(part)

    async def download(self, folder: Path | str) -> Path:
        """Download it to its path inside a folder; data that is already there is not downloaded again.

        Raises:
            UnsafePath: The path would be outside the folder.
            Damaged: The downloaded bytes did not match the manifest, twice.
        """
        base = Path(folder)
        base.mkdir(parents=True, exist_ok=True)
        target = target_of(base, self.path)
        if self.info is not None and is_downloaded(target, self.info):
            return target
        key = f"{self._http.url}\n{self._run}\n{self.path}\n{self.info.sha256 if self.info else ''}"
        known = self.info is not None and self.info.sha256 is not None
        with Partial(target, key, keep=base / PARTIAL if known else None) as part:
            return await self._fill(part)

    async def _fill(self, part: Partial) -> Path:
        """Download the missing bytes, retrying as often as necessary."""
        attempts = Attempts(self._http.policy)
        damaged = False
        while True:
            try:
                await self._fetch(part, attempts)
                return part.finish(self.info)
            except Damaged:
                if damaged:
                    raise
                damaged = True  # bytes of an earlier download may be the cause
                continue
            except (httpx.RequestError, MlereduxApiError) as error:
                outside = isinstance(error, MlereduxApiError) and error.status == 416
                if outside and part.size:
                    part.restart()
                pause = attempts.after(error, self._http.url, again=outside)
            await async_sleep(pause)

    async def _fetch(self, part: Partial, attempts: Attempts) -> None:
        if self.info is not None and part.size and part.size == self.info.size:
            return
        headers = {}
        tag = part.tag or (f'"{self.info.sha256}"' if self.info is not None and self.info.sha256 else None)
        if part.size and tag is not None:
            headers = {"Range": f"bytes={part.size}-", "If-Range": tag}
        arrived = part.size
        async with self._http.stream(calls.Call("GET", self._url, headers=headers)) as response:
            continues = response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-")
            if part.size and not (response.status_code == 206 and continues):
                part.restart()
            part.tag = response.headers.get("ETag")
            async for piece in response.aiter_bytes():
                check_stopped()
                part.write(piece)
                if part.size > arrived:
                    attempts.progress()

    def __repr__(self) -> str:
        return f"<artifact {self.path!r} of run {self._run}>"


class AsyncArtifacts:
    """The files of a run: `run.artifacts["report.html"]`, or iterate over them."""

    def __init__(self, http: AsyncHttp, run: str) -> None:
        self._http, self._run = http, run
        self._path = f"/v1/runs/{calls.segment(run)}"
        self._all = AsyncPager(http, f"{self._path}/artifacts", partial(parse, Artifact), page_size=500)

    async def __aiter__(self) -> AsyncIterator[AsyncArtifactFile]:
        async for info in self._all:
            yield AsyncArtifactFile(self._http, self._run, info.path, info)

    def __getitem__(self, path: str) -> AsyncArtifactFile:
        """Return a file by its path, without checking that it exists."""
        return AsyncArtifactFile(self._http, self._run, path)

    # sync: def __contains__(self, path: object) -> bool:
    # sync:     return any(info.path == path for info in self._all)

    async def list(self, pattern: str | None = None) -> Listing[Artifact]:
        """Return the files whose paths match (`*.html`, `output/*`)."""
        return Listing([info async for info in self._all if matches(info.path, pattern)])

    async def download(self, folder: Path | str, pattern: str | None = None, *, at_once: int = 4) -> Listing[Path]:
        """Download all files, or those whose path matches, into a folder; a repeated call only downloads missing files.

        Names are checked before anything is downloaded. Each file is checked against its hash, and is created
        atomically.

        Args:
            folder: The folder, which is created if it does not exist.
            pattern: Shell-style pattern: `*.csv`, `output/*`; `*` also matches `/`.
            at_once: Maximum number of concurrent downloads.

        Returns:
            The paths of the files.

        Raises:
            UnsafePath: A name would point outside the folder; nothing was downloaded.
            NotFound: No file matches the pattern.
        """
        wanted = await self.list(pattern)
        if pattern is not None and not wanted:
            raise NotFound(f"No artifact of run {self._run} matches {pattern!r}.", hint="See `run.artifacts.list()`.")
        for info in wanted:
            target_of(Path(folder), info.path)

        async def fetch(info: Artifact) -> Path:
            return await AsyncArtifactFile(self._http, self._run, info.path, info).download(folder)

        return Listing(await async_each(fetch, wanted, at_once))

    async def archive(self, path: Path | str, format: str | None = None, *, prefix: str | None = None) -> Path:
        """Download all files in one archive.

        Args:
            path: Path of the archive, which is created only if the download completes.
            format: `zip`, `tar` or `tar.gz`; None: determined by the path's suffix.
            prefix: Only include files whose paths begin with this.
        """
        target = Path(path)
        kind = format or next((FORMATS[end] for end in FORMATS if target.name.lower().endswith(end)), None)
        if kind not in FORMATS.values():
            hint = "Use zip, tar or tar.gz."
            raise UsageError(f"{format or target.name!r} is not a supported archive format.", hint=hint)
        call = calls.get(f"{self._path}/archive", {"format": kind, "prefix": prefix})
        attempts = Attempts(self._http.policy)
        with Partial(target) as part:
            while True:
                try:
                    part.restart()
                    async with self._http.stream(call) as response:
                        async for piece in response.aiter_bytes():
                            part.write(piece)
                    return part.finish()
                except (httpx.RequestError, MlereduxApiError) as error:
                    pause = attempts.after(error, self._http.url)
                await async_sleep(pause)

    # sync: def _repr_html_(self) -> str:
    # sync:     return self.list()._repr_html_()

    def __repr__(self) -> str:
        return f"<artifacts of run {self._run}>"
