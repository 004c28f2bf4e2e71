"""One thread for linear algebra: floating-point sums depend on their order, and waiting threads cost CPU time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_LOCK = threading.RLock()
"""The limit is that of the process: a thread that is done would lift that of another one."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which linear algebra uses one thread; one thread of the process is in it at a time."""
    import scipy.linalg  # noqa: F401 - the limit holds for libraries that are loaded already
    from threadpoolctl import threadpool_limits

    with _LOCK, threadpool_limits(1):
        yield
