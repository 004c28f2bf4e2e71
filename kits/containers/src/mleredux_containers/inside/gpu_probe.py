"""Print the GPUs that this process sees, as JSON in the last line; each sandbox runs this text with its own Python."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

PATTERNS = ("nvidia[0-9]*", "nvidia-caps/nvidia-cap*", "dxg", "kfd", "dri/render*")
VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
COUNTS = {
    "torch": lambda torch: len([torch.ones(1, device=f"cuda:{n}").item() for n in range(torch.cuda.device_count())]),
    "tensorflow": lambda tensorflow: len(tensorflow.config.list_physical_devices("GPU")),
    "jax": lambda jax: sum(device.platform == "gpu" for device in jax.devices()),
}

frameworks = {}
for name in COUNTS:
    if importlib.util.find_spec(name):
        try:
            frameworks[name] = COUNTS[name](importlib.import_module(name))  # type: ignore[no-untyped-call]
        except Exception as error:  # a framework that can't use a device may raise anything
            frameworks[name] = " ".join(str(error).split())[:200] or type(error).__name__
tool = shutil.which("nvidia-smi")
listed = subprocess.run([tool, "-L"], stdout=subprocess.PIPE).stdout.decode() if tool else ""
seen = {
    "nodes": sorted(str(path) for pattern in PATTERNS for path in Path("/dev").glob(pattern)),
    "variables": {name: os.environ.get(name) for name in VARIABLES},
    "driver": re.findall(r"UUID: ([\w/-]+)", listed),
    "frameworks": frameworks,
}
print("\n" + json.dumps(seen))
