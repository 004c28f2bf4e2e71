import os, shutil, tempfile
from pathlib import Path
import numpy as np
from PIL import Image

work = Path(tempfile.mkdtemp())
shutil.copytree(os.environ["MLEREDUX_DATA_DIR"], work / "data")
os.chdir(work)
kinds = sorted(p.name for p in Path("data/train").iterdir())
load = lambda p: [np.count_nonzero(a := np.asarray(Image.open(p))) / max(1, np.ptp(np.nonzero(a)[0]) + 1) ** 2]
X = [(load(p)[0], kinds.index(p.parent.name)) for p in sorted(Path("data/train").rglob("*.png"))]
means = [np.mean([x for x, y in X if y == k]) for k in range(len(kinds))]
lines = ["file,kind"]
for p in Path("data/test").iterdir():
    lines.append(f"{p.name},{kinds[int(np.argmin([abs(m - load(p)[0]) for m in means]))]}")
Path(os.environ["MLEREDUX_SUBMISSION"]).write_text("\n".join(lines) + "\n")
shutil.rmtree(work)
