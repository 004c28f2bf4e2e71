"""AIDE's agent, with a correct description of its environment and fixes for known crashes."""

from __future__ import annotations

import time
from importlib import metadata
from typing import Any

from aide.agent import Agent
from aide.interpreter import ExecutionResult, Interpreter
from aide.journal import Node
from aide.utils import data_preview
from aide.utils.metric import MetricValue
from mleredux_agentkit import Clock

_LIBRARIES = (
    "numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "lightgbm", "xgboost", "xgboost-cpu", "catboost",
    "torch", "torchvision", "torchaudio", "timm", "transformers", "sentence-transformers", "datasets", "pillow",
    "opencv-python-headless", "scikit-image", "albumentations", "librosa", "nltk", "gensim", "optuna", "tensorflow",
)  # fmt: skip
SHORTEST_RUN = 5


class Search(Agent):  # type: ignore[misc]
    """AIDE's agent."""

    @property
    def _prompt_environment(self) -> dict[str, str]:
        """The installed packages; by default AIDE claims that PyTorch and ten others are installed."""
        installed = {distribution.metadata["Name"].lower() for distribution in metadata.distributions()}
        names = ", ".join(f"`{name}`" for name in _LIBRARIES if name in installed)
        return {
            "Installed Packages": f"Your solution can use these machine learning packages: {names}. "
            "No others are installed, and none can be installed."
        }

    def update_data_preview(self) -> None:
        """Preview the data; if a file can't be previewed, show only the file tree."""
        try:
            super().update_data_preview()
        except (ValueError, OSError) as error:
            print(f"the data can't be previewed ({error}); only the file names are shown", flush=True)
            self.data_preview = data_preview.generate(self.cfg.workspace_dir, include_file_details=False)

    def parse_exec_result(self, node: Node, exec_result: ExecutionResult) -> None:
        """Have the feedback model evaluate the node.

        It states for each metric whether lower is better. Contradictions would crash AIDE, so the first answer is used.
        """
        super().parse_exec_result(node, exec_result)
        first = next((other.metric for other in self.journal.good_nodes), None)
        if first is not None and not node.is_buggy and node.metric.maximize != first.maximize:
            node.metric = MetricValue(node.metric.value, maximize=first.maximize)


class Executor:
    """Runs solutions in AIDE's interpreter, within the remaining time.

    Args:
        interpreter: AIDE's interpreter.
        clock: Ends the work at the deadline.
        config: AIDE's configuration; the prompt contains its time limit.
        longest: Maximum run time of a solution in seconds.
    """

    def __init__(self, interpreter: Interpreter, clock: Clock, config: Any, longest: int) -> None:
        self.interpreter, self.clock, self.config, self.longest = interpreter, clock, config, longest

    def fit(self) -> None:
        """Set the time limit of the next solution."""
        limit = max(SHORTEST_RUN, min(self.longest, int(self.clock.left)))
        self.config.exec.timeout = self.interpreter.timeout = limit

    def run(self, code: str, reset: bool = True) -> ExecutionResult:
        """Run a solution. If it crashes its whole process, it counts as buggy, and AIDE continues."""
        self.fit()
        started = time.time()
        try:
            return self.interpreter.run(code, reset)
        except RuntimeError as error:
            message = f"{error}: it crashed, or needed more memory than is available."
            return ExecutionResult([message], time.time() - started, "RuntimeError", {"args": [message]}, [])
