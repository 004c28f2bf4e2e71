"""One thread for linear algebra: floating-point sums depend on their order, and waiting threads cost CPU time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import threadpool_limits


def one_thread() -> threadpool_limits:
    """Return a context in which linear algebra uses one thread."""
    import scipy.linalg  # noqa: F401 - the limit holds for libraries that are loaded already
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
