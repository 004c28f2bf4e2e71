"""Single-threaded linear algebra: floating-point sums depend on their order, and waiting threads cost CPU time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_LOCK = threading.RLock()
"""The limit applies to the whole process: a thread that finishes would lift the limit for the others."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread in a context that only one thread of the process can enter at a time."""
    import scipy.linalg  # noqa: F401 - the limit applies only to libraries that are already loaded
    import sklearn
    from threadpoolctl import threadpool_limits

    with _LOCK, threadpool_limits(1), sklearn.config_context(skip_parameter_validation=True):
        yield
