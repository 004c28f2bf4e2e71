import pathlib, importlib.util

ns = {}
for p in sorted(pathlib.Path(__file__).parent.iterdir()):
    if p.name.startswith("part"):
        exec(compile(p.read_text(), p.name, "exec"), ns)
