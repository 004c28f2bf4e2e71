# ruff: noqa: E501 - lines of tools
"""The primary failure is what ended a run: traps, in the wording of tools, and texts that are no evidence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux_experiments.failures import primary
from mleredux_experiments.results.sources import read_run

sys.path.insert(0, str(Path(__file__).parent / "failures"))
from logs import cause_of, written

TRACE = 'Traceback (most recent call last):\n  File "/home/agent/a.py", line 3, in <module>\n    main()\n'


def ended(
    code: int | None = 0,
    signal: str | None = None,
    by: str | None = None,
    *,
    exists: bool = False,
    valid: bool = False,
    message: str = "no submission.csv",
    searches: bool = False,
    score: float | None = None,
) -> dict[str, Any]:
    """The `meta.json` of a run."""
    return {
        "exit_code": code,
        "signal": signal,
        "ended_by": by,
        "seconds": 50,
        "time_limit_seconds": 3600,
        "searches": searches,
        "higher_is_better": True,
        "submission": {"exists": exists, "valid": valid, "message": message},
        "score": score,
    }


OK: dict[str, Any] = {"exists": True, "valid": True, "message": "valid", "score": 0.8}
CASES: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "code-error:KeyError",
        ended(1),
        "pip install xgboost\n"
        + TRACE
        + "ModuleNotFoundError: No module named 'xgboost'\nfalling back to sklearn\nfold 0 auc 0.71\n"
        + TRACE
        + "KeyError: 'target'\n",
    ),
    (
        "no-submission",
        ended(),
        TRACE
        + "ModuleNotFoundError: No module named 'xgboost'\n[exit 1]\n\n[agent] Use sklearn then.\n$ python b.py\ncv auc 0.71\nwrote submission.csv 500\n[exit 0]\n\n[agent] Done.\n",
    ),
    (
        "memory",
        ended(1),
        'epoch 1\n[rank0]: Traceback (most recent call last):\n[rank0]:   File "/w/train.py", line 8, in <module>\n[rank0]:     loss.backward()\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity\nE1126 08:00:00 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 44) of binary: /usr/bin/python\n'
        + TRACE
        + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============\ntrain.py FAILED\n------------\n",
    ),
    (
        "code-error:KeyError",
        ended(1),
        TRACE
        + "nbclient.exceptions.CellExecutionError: An error occurred while executing the following cell:\n------------------\ndf['x']\n------------------\n\n---------------------------------------------------------------------------\nKeyError                                  Traceback (most recent call last)\nCell In[3], line 1\n----> 1 df['x']\n\nFile /opt/venv/lib/python3.11/site-packages/pandas/core/frame.py:4102, in DataFrame.__getitem__(self, key)\n   4101     return self._getitem_multilevel(key)\n-> 4102 indexer = self.columns.get_loc(key)\n\nKeyError: 'x'\n\n",
    ),
    (
        "code-error:SIGSEGV",
        ended(139),
        'training\nFatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n  File "a.py", line 3 in <module>\n',
    ),
    ("code-error:SIGSEGV", ended(None, "SIGSEGV"), "training\n"),
    ("memory", ended(137), "loading images\nloaded 5000\n"),
    (
        "packages",
        ended(),
        "$ conda install -y rapids\nCollecting package metadata (current_repodata.json): failed\n\nCondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://conda.anaconda.org/rapidsai/linux-64/repodata.json>\nElapsed: -\n\nAn HTTP error occurred when trying to retrieve this URL.\n[exit 1]\n\n[agent] I cannot install it.\n",
    ),
    (
        "llm-api",
        ended(1),
        "step 9\nanthropic.BadRequestError: Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'prompt is too long: 213421 tokens > 200000 maximum'}}\n",
    ),
    (
        "code-error:ValueError",
        ended(),
        json.dumps(
            {
                "type": "item.completed",
                "item": {
                    "type": "command_execution",
                    "command": "python a.py",
                    "aggregated_output": TRACE + "ValueError: Input X contains NaN.\n",
                    "exit_code": 1,
                },
            }
        )
        + "\n"
        + json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": "I could not solve it."}})
        + "\n",
    ),
    (
        "time",
        ended(None, "SIGTERM", "time"),
        TRACE + "torch.OutOfMemoryError: CUDA out of memory.\nretry with batch 8\nepoch 0 loss 0.4\nepoch 1 loss 0.3\n",
    ),
    (
        "packages",
        ended(),
        "$ uv pip install 'tensorflow==1.15'\n  × No solution found when resolving dependencies:\n  ╰─▶ Because tensorflow==1.15 has no wheels with a matching Python ABI tag\n      (e.g., `cp311`) and you require tensorflow==1.15, we can conclude that your\n      requirements are unsatisfiable.\n[exit 1]\n\n[agent] No way to install it, I stop.\n",
    ),
    (
        "downloads",
        ended(1),
        TRACE
        + "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-6)\n\nCannot access gated repo for url https://huggingface.co/google/gemma-3-1b-pt/resolve/main/config.json.\nAccess to model google/gemma-3-1b-pt is restricted and you are not in the authorized list. Visit https://huggingface.co/google/gemma-3-1b-pt to ask for access.\n",
    ),
    (
        "time",
        ended(1),
        TRACE
        + "nbclient.exceptions.CellTimeoutError: A cell timed out while it was being executed, after 600 seconds.\nThe message was: Cell execution timed out.\nHere is a preview of the cell contents:\n-------------------\nmodel.fit(X, y)\n-------------------\n",
    ),
    (
        "debug-loop",
        ended(),
        "".join(
            f"step {i}\n" + TRACE + f"KeyError: 'col{i}'\n[exit 1]\n\n[agent] Fix it.\n$ python a.py\n"
            for i in range(5)
        )
        + "[agent] steps used up\n",
    ),
    ("none", ended(0, **OK), "DeprecationWarning: x\ncv auc 0.71\nwrote submission\n"),
    ("ended-early", ended(0, **OK, searches=True), "cv auc 0.61\nwrote submission\n[agent] good enough\n"),
    (
        "invalid-submission",
        ended(0, exists=True, message="column target is missing"),
        TRACE + "KeyError: 'a'\nfixed\nwrote submission.csv 10\n",
    ),
    (
        "code-error:RuntimeError",
        ended(1, **OK),
        "wrote submission.csv\n" + TRACE + "RuntimeError: stack expects each tensor to be equal size\n",
    ),
    (
        "disk",
        ended(1),
        TRACE
        + "RuntimeError: [enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing file data/7: file write failed\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE
        + "OSError: [Errno 28] No space left on device\n",
    ),
    (
        "llm-api",
        ended(1),
        "litellm.exceptions.InternalServerError: litellm.InternalServerError: AnthropicException - Overloaded. Handle with `litellm.InternalServerError`.\n",
    ),
    (
        "code-error:IndentationError",
        ended(1),
        '  File "/home/agent/a.py", line 3\n    x = 1\nIndentationError: unexpected indent\n',
    ),
    (
        "code-error:NameError",
        ended(1),
        "a\nNameError: name 'pd' is not defined\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE
        + "NameError: name 'pd' is not defined\nmake: *** [Makefile:3: train] Error 1\n",
    ),
    (
        "packages",
        ended(1),
        TRACE
        + "ImportError: cannot import name 'AdamW' from 'transformers' (/opt/venv/lib/python3.11/site-packages/transformers/__init__.py)\n",
    ),
    (
        "packages",
        ended(1),
        TRACE
        + "RuntimeError: Failed to import transformers.models.bert.modeling_bert because of the following error (look up to see its traceback):\nnumpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject\n",
    ),
    (
        "memory",
        ended(1),
        'docker: container exited\nTraceback (most recent call last):\n  File "a.py", line 2, in <module>\n    x = np.zeros((400000, 400000))\nnumpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.16 TiB for an array with shape (400000, 400000) and data type float64\n',
    ),
    (
        "memory",
        ended(1),
        TRACE
        + "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.\n",
    ),
    (
        "code-error:XGBoostError",
        ended(1),
        TRACE
        + "xgboost.core.XGBoostError: [08:00:00] /workspace/src/data/data.cc:507: Check failed: valid: Label contains NaN, infinity or a value too large.\nStack trace:\n  [bt] (0) /opt/venv/lib/libxgboost.so(+0x1) [0x7f]\n  [bt] (1) /opt/venv/lib/libxgboost.so(+0x2) [0x7f]\n\n",
    ),
    (
        "code-error:RuntimeError",
        ended(1),
        TRACE
        + "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n",
    ),
    ("cancelled", ended(None, "SIGTERM", "cancelled"), "epoch 1\n"),
    (
        "code-error:Error in eval",
        ended(1),
        "R version 4\nError in eval(predvars, data, env) : object 'fare' not found\nCalls: lm -> eval\nExecution halted\n",
    ),
)


@pytest.mark.parametrize(("expected", "meta", "log"), CASES)
def test_what_ended_the_run_is_primary(
    expected: str, meta: dict[str, Any], log: str, add_run: Callable[..., Path]
) -> None:
    findings = read_run(written(add_run, 0, meta, log), rollouts=True).findings or ()
    first = next((one for one in findings if not one.overcome), None)
    cause = cause_of(first)
    assert expected in (cause, f"{cause}:{first.kind if first else None}"), findings


def test_instructions_and_descriptions_in_logs_are_no_evidence(add_run: Callable[..., Path], tmp_path: Path) -> None:
    real = mleredux.run("wine", "dummy", sandbox="process", runs_dir=tmp_path / "real", data_dir=tmp_path / "data")
    texts = {name: (real.path / "task" / name).read_text() for name in ("instructions.md", "description.md")}
    texts["description.md"] += (
        "\nRows with `MemoryError: out of memory` and with ModuleNotFoundError: No module named 'x' are bugs.\n"
    )
    log = "\n".join(f"  > {line}" for text in texts.values() for line in text.splitlines())
    for echoed in (log, json.dumps({"type": "user", "text": "\n".join(texts.values())})):
        run = written(add_run, len(echoed), ended(1), f"{echoed}\nepoch 1\n")
        (run / "task").mkdir()
        for name, text in texts.items():
            (run / "task" / name).write_text(text)
        findings = read_run(run, rollouts=True).findings or ()
        assert primary(findings) == "no-submission" and not [one for one in findings if one.overcome], findings
