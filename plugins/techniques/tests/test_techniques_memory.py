"""What is remembered of a dataset never reaches another one: neither of another thread, nor of a nested call."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mleredux_techniques._kit.data.dataset import remembered
from mleredux_techniques._kit.data.threads import one_thread


def test_threads_remember_their_own_dataset() -> None:
    given: list[Any] = [object(), object()]
    begun, looked = threading.Event(), threading.Event()

    def first() -> Any:
        return remembered(given[0], "it", lambda: (begun.set(), looked.wait(30), given[0])[2])

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first)
        assert begun.wait(30)
        remembered(given[1], "another", lambda: None)
        looked.set()
        assert waiting.result() is given[0]
    assert remembered(given[1], "it", lambda: given[1]) is given[1]


def test_a_nested_dataset_changes_nothing_of_the_outer_one() -> None:
    outer: Any = object()
    inner: Any = object()
    assert remembered(outer, "it", lambda: (remembered(inner, "it", lambda: "inner"), "outer")[1]) == "outer"
    assert remembered(inner, "it", lambda: "inner") == "inner"


def test_one_thread_at_a_time_limits_the_libraries() -> None:
    inside, most = [0], [0]

    def work(_number: int) -> None:
        with one_thread(), one_thread():
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            threading.Event().wait(0.01)
            inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert most == [1]
