"""Programs that use workers, sockets, shared memory and databases honestly run within their limits."""

from __future__ import annotations

import sys

import pytest
from mleredux_programs import run_confined

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
HONEST = """
import asyncio, fcntl, multiprocessing, socket, sqlite3, subprocess, sys, tempfile, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import shared_memory
import joblib, numpy
def twice(number):
    return 2 * number
def told(end):
    end.send(end.recv() + 1)
if __name__ == "__main__":
    with ProcessPoolExecutor(4) as pool:
        assert list(pool.map(twice, range(100))) == list(range(0, 200, 2))
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(twice, range(10))) == 90
    doubled = joblib.Parallel(3, "multiprocessing")(joblib.delayed(twice)(number) for number in range(9))
    assert doubled == list(range(0, 18, 2))
    large = numpy.ones(2_000_000)
    assert joblib.Parallel(2, "multiprocessing")(joblib.delayed(numpy.sum)(large) for _ in range(2)) == [2e6, 2e6]
    for kind in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(kind)
        near, far = context.Pipe()
        process = context.Process(target=told, args=(far,))
        process.start(); near.send(1)
        assert near.recv() == 2
        process.join()
    with multiprocessing.Manager() as manager:
        assert manager.dict(a=1)["a"] == 1
    held = shared_memory.SharedMemory(create=True, size=1 << 20)
    held.close(); held.unlink()
    async def work():
        end = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=subprocess.PIPE)
        return (await end.communicate())[0]
    assert asyncio.run(work()).strip() == b"1"
    base = sqlite3.connect("base.db")
    with base:
        base.execute("create table a (b)")
        base.executemany("insert into a values (?)", [(number,) for number in range(1000)])
    assert sqlite3.connect("base.db").execute("select count(*) from a").fetchone() == (1000,)
    with tempfile.TemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    numpy.save("array", large); assert numpy.load("array.npy", mmap_mode="r").sum() == 2e6
    open("out", "w").write("done")
"""


def test_honest_programs_with_workers_sockets_and_databases_run(counted_by: str) -> None:
    result = run_confined(["script.py"], {"script.py": HONEST.encode()}, ["out"], seconds=60, memory_mb=1_024)
    assert (result.code, result.limit, result.files) == (0, None, {"out": b"done"}), (counted_by, result.log)
