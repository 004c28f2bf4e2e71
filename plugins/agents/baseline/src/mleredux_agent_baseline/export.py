"""Write the chosen solution as one self-contained script: the modules it needs, and the choices."""

from __future__ import annotations

import ast
import dataclasses
import pprint
from importlib import resources
from pathlib import Path

from mleredux_agent_baseline.files import Facts
from mleredux_agent_baseline.fit import Choice

PACKAGE = "mleredux_agent_baseline"
MODULES = ("files", "tables", "metrics", "problem", "columns", "features", "images", "models", "fit", "solve")
"""Modules in an order in which each uses only the ones before it."""


def write_solution(
    path: Path, facts: Facts, choices: list[list[Choice]], seed: int, threads: int, memory_mb: int, max_rows: int
) -> None:
    """Write a script that creates the submission: `python solution.py DATA_DIR SUBMISSION`."""
    imports: dict[str, None] = {}
    bodies = []
    for name in MODULES:
        imported, body = split_source(resources.files(PACKAGE).joinpath(f"{name}.py").read_text(encoding="utf-8"))
        imports.update(dict.fromkeys(imported))
        bodies.append(f"# --- {name}\n\n{body}")
    chosen = [[(choice.candidate, choice.weight) for choice in head] for head in choices]
    text = "\n".join(
        [
            '"""Makes the submission: python solution.py DATA_DIR SUBMISSION (needs pandas, scikit-learn, skrub)."""',
            "",
            "from __future__ import annotations",
            "",
            *sorted(imports),
            "",
            *bodies,
            "# --- the choices of this run",
            "",
            f"FACTS = Facts(**{pprint.pformat(dataclasses.asdict(facts), width=100)})",
            f"CHOICES = {pprint.pformat(chosen, width=100)}",
            "",
            'if __name__ == "__main__":',
            "    import sys",
            "",
            "    solve(",
            "        Path(sys.argv[1]), Path(sys.argv[2]), FACTS,",
            "        [[Choice(*choice) for choice in head] for head in CHOICES],",
            f"        seed={seed}, threads={threads}, memory_mb={memory_mb}, max_rows={max_rows},",
            "    )",
            "",
        ]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def split_source(source: str) -> tuple[list[str], str]:
    """Split a module into external imports (one string each) and its source without docstring and internal imports."""
    imports: list[str] = []
    dropped: set[int] = set()
    lines = source.splitlines()
    for place, node in enumerate(ast.parse(source).body):
        docstring = place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            dropped.update(range(node.lineno - 1, node.end_lineno or node.lineno))
        if isinstance(node, ast.Import):
            imports.append(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in (PACKAGE, "__future__"):
            imports += [ast.unparse(ast.ImportFrom(node.module, [alias], 0)) for alias in node.names]
    kept = [line for number, line in enumerate(lines) if number not in dropped]
    return imports, "\n".join(kept).strip() + "\n\n"
