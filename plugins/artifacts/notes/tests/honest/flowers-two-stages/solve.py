"""Runs both stages, one after the other."""

import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
os.makedirs("work", exist_ok=True)
for stage in ("features.py", "model.py"):
    subprocess.run([sys.executable, os.path.join(here, stage), "work"], check=True)
os.replace("work/submission.csv", "submission.csv")
