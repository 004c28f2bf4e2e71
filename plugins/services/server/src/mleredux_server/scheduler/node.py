"""The program that an executor starts on a node for a run that receives secrets."""

from __future__ import annotations

import sys
from pathlib import Path

from mleredux_executor_nodes.shared import execute_ticket

from mleredux_server.scheduler.loans import borrow

if __name__ == "__main__":
    execute_ticket(Path(sys.argv[1]), sys.argv[2], borrow)
