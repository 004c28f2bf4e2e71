"""Run in confinement as `runner.py SCRIPTS VARIATIONS`: each script runs in its own fork, after slow imports."""

import os
import resource
import runpy
import sys
from importlib import import_module

MODULES = ("pandas", *(f"sklearn.{name}" for name in ("dummy", "linear_model", "neighbors", "preprocessing", "tree")))
CPU_SECONDS = 20
TABLES = ("train.csv", "test.csv")
RESULTS = ("submission.csv", "validation.json")


def main(scripts: int, variations: int) -> None:
    """Run each script on each variation: `train.csv-0` → folder `0-0` → `submission.csv-0-0`."""
    for name in MODULES:
        import_module(name)
    for script in range(scripts):
        for variation in range(variations):
            folder = f"{script}-{variation}"
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
                os.mkdir(folder)
                for name in TABLES:
                    os.symlink(f"../{name}-{variation}", f"{folder}/{name}")
                os.chdir(folder)
                runpy.run_path(f"../script-{script}.py", run_name="__main__")
                for name in RESULTS:
                    os.rename(name, f"../{name}-{folder}")
                os._exit(0)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
