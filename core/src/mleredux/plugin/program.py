"""For code that judges what agents wrote and ran: its texts, and what names and constants of a program mean.

Programs are parsed, never executed; imports under other names are followed::

    import ast

    from mleredux.plugin.program import Scope

    tree = ast.parse("import pandas as pd; path = 'data/' + 'train.csv'; pd.read_csv(path)")
    scope, call = Scope(tree), tree.body[-1].value
    assert scope.name(call.func) == "pandas.read_csv"
    assert scope.value(call.args[0]) == "data/train.csv"
"""

from __future__ import annotations

from mleredux._core.programs.beside import LEFT_OUT, files_beside
from mleredux._core.programs.resolve import Scope
from mleredux._core.programs.texts import MAX_LINE, MAX_TEXT, Kind, Text, code_of, notebook_runner, plain_code, texts_of

__all__ = [
    "LEFT_OUT",
    "MAX_LINE",
    "MAX_TEXT",
    "Kind",
    "Scope",
    "Text",
    "code_of",
    "files_beside",
    "notebook_runner",
    "plain_code",
    "texts_of",
]
