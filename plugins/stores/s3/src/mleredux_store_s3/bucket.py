"""A part of a bucket, accessed with `obstore`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from mleredux.errors import StoreError
from mleredux.plugin import Scheme
from mleredux.plugin.executor import Stored

from mleredux_store_s3 import VARIABLES

_INSTALL = 'Install it: `pip install "mleredux-store-s3[s3]"`.'
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_MOST = 1000
"""Maximum number of objects that one request may delete."""
_NO_BUCKET = "NoSuchBucket"
"""The error code in S3's response."""
_RESPONSE = re.compile(r"code: (\d+ [\w ]+)(?:.*?<Code>(\w+))?(?:.*?<Message>([^<]+))?|redirect.*", re.DOTALL)
"""A response in an error of obstore: status, and S3's code and message."""
_PASSES = re.compile(r"408|429|5(?!01)\d\d|.*TooSkewed", re.DOTALL)
"""Responses that may be different later, if the store is less busy or a clock is set."""
_CAUSE = re.compile(r'(?:message|error): "([^"]+)"')
"""The system's message in an error of obstore."""
_AWS = ("amazonaws.com", "amazonaws.com.cn", "api.aws")
_ROLE = (*_AWS, "169.254.0.0/16", "fd00:ec2::/32")
"""Hosts of the services that return credentials of a machine's role."""
_ROLE_URLS = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_ENDPOINT_URL_STS")
_NOWHERE = "http://127.0.0.1:1"
"""A proxy that refuses connections."""


class Bucket:
    """The objects of a bucket under a prefix.

    Region, endpoint and credentials are read from the environment when it is created: `AWS_REGION`, `AWS_ENDPOINT_URL`,
    `AWS_ACCESS_KEY_ID`, …, or taken from the machine's role.

    Args:
        url: `s3://BUCKET/PREFIX`.

    Raises:
        StoreError: It is invalid, or obstore is not installed.
    """

    variables: tuple[str, ...] = VARIABLES

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import S3Store
        except ImportError as error:
            raise StoreError("The object store requires the package obstore.", hint=_INSTALL) from error
        parts = urlsplit(url)
        if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
            raise StoreError(
                "The URL of an object store is s3://BUCKET/PREFIX.",
                hint="Credentials and the endpoint come from variables such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL.",
            )
        endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
        options: Any = {"allow_http": (endpoint or "").startswith("http://"), "timeout": timedelta(seconds=60)}
        if not getproxies().keys() & {"http", "https", "all"}:
            # The client follows redirects of reads, and sends the session token again: let it reach no other host.
            options |= {"proxy_url": _NOWHERE, "proxy_excludes": ",".join(_hosts(endpoint))}
        try:
            self._store = S3Store(
                parts.netloc,
                prefix=parts.path.strip("/") or None,
                config={"endpoint": endpoint} if endpoint else {},
                client_options=options,
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
            )
        except BaseError as error:
            raise _explained(error, url) from error
        self.url = url
        self._obstore, self._error = obstore, BaseError

    def read(self, key: str) -> Stored | None:
        """Get an object."""
        with self._explained(FileNotFoundError):
            response = self._obstore.get(self._store, key)
            return Stored(bytes(response.bytes()), _tag(response.meta["e_tag"], self.url))
        return None

    def write(self, key: str, content: bytes) -> None:
        """Put an object."""
        with self._explained():
            self._obstore.put(self._store, key, content)

    def swap(self, key: str, content: bytes, tag: str | None) -> str | None:
        """Put an object with `If-Match`, or with `If-None-Match: *`."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._explained(AlreadyExistsError, PreconditionError, FileNotFoundError):
            # A single request, since only a whole request can be conditional.
            put = self._obstore.put(
                self._store, key, content, mode="create" if tag is None else {"e_tag": tag}, use_multipart=False
            )
            return _tag(put["e_tag"], self.url)
        return None

    def keys(self, folder: str) -> Iterator[str]:
        """List objects, 1000 per request."""
        with self._explained():
            for listed in self._obstore.list(self._store, folder, chunk_size=_MOST):
                yield from (item["path"] for item in listed)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, up to 1000 per request."""
        wanted = list(keys)
        with self._explained():
            for begin in range(0, len(wanted), _MOST):
                self._obstore.delete(self._store, wanted[begin : begin + _MOST])

    @contextmanager
    def _explained(self, *expected: type[Exception]) -> Iterator[None]:
        """Convert errors, except those that a bucket that exists is expected to raise."""
        try:
            yield
        except (self._error, OSError) as error:
            if not isinstance(error, expected) or _NO_BUCKET in str(error):
                raise _explained(error, self.url) from error


def _hosts(endpoint: str | None) -> Iterator[str]:
    """Yield the hosts that requests may reach, with their subdomains."""
    role = not os.environ.get("AWS_ACCESS_KEY_ID")
    yield from _ROLE if role else () if endpoint else _AWS
    for url in (endpoint, *(os.environ.get(name) for name in _ROLE_URLS if role)):
        yield from filter(None, [urlsplit(url or "").hostname])


def _tag(tag: str | None, url: str) -> str:
    if tag is None:
        raise StoreError(f"{url} returns no ETags.", hint="Runs need conditional writes, like those of S3.")
    return tag


def _explained(error: Exception, url: str) -> StoreError:
    """Return an error with the store's reason, but without addresses and durations, which differ each time."""
    text, _, debug = str(error).replace("source: TimedOut", 'error: "timed out"').partition("\n\nDebug source")
    if _NO_BUCKET in text:
        return StoreError(f"The bucket of {url} does not exist.", hint="Check its name, and AWS_ENDPOINT_URL.")
    if (response := _RESPONSE.search(text)) is None:
        causes = [*_CAUSE.findall(debug), " ".join(text.rpartition(" - ")[2].split())]
        return StoreError(f"The object store {url} does not respond: {causes[0]}.")
    status, code, message = response.groups()
    reason = f"{(message or status or response[0]).rstrip('.')}{f' ({code})' if code else ''}"
    if _PASSES.match(f"{status} {code}"):
        return StoreError(f"The object store {url} does not respond normally: {reason}.")
    hint = "Check the credentials, AWS_REGION and AWS_ENDPOINT_URL in the environment, and the bucket's permissions."
    return StoreError(f"The object store {url} refused a request: {reason}.", hint=hint)


SCHEME = Scheme(id="s3", title="Object stores with the S3 protocol", open_store=Bucket)
