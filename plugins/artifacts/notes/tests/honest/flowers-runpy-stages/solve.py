import runpy, pathlib

here = pathlib.Path(__file__).parent
space = {}
for stage in ("load", "fit"):
    space = runpy.run_path(str(here / "stages" / f"{stage}.py"), init_globals=space)
