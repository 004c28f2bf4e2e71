"""The words of help texts, messages, docs and code are the field's own: the glossary of CONTRIBUTING.md, held."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = {
    r"verbs?": "command, subcommand",
    r"mend(s|ed|ing|able)?": "fix",
    r"anew": "again",
    r"makes? no sense (of|for)": "does not apply to, invalid",
    r"no longer good": "expired, invalid",
    r"at most so many": "maximum number of",
    r"pass(es|ed)? over": "ignored, skipped",
    r"hand(s|ed|ing)? (it |them |one |something )?in": "submit",
    r"(looks?|looked) at": "check, inspect, read",
    r"for good": "permanently, in production",
    r"data (are|were|have)": "data is, was, has",
    r"brought up to date": "migrated, updated",
    r"take(n|s)? up again": "resumed, retried",
    r"taken down": "recorded, captured",
    r"lets? (an|the) agents? work": "run an agent on a task",
    r"what (it|they|an agent|the agent|agents) (leaves?|left)( behind)?": "output files, artifacts",
    r"gone on with": "resumed, continued",
}
PLAIN = {
    r"doors?": "bridge, session",
    r"of (?:ours|(?:its|their|your|our) own(?! \w))": "our, its own …, separate",
    r"tells? (?:of|no|nothing)|can't be told|is told to": "reveals, is predictive of, reports",
    r"lends|lent": "gives, grants, serves",
    r"(?<!there )(?:is|are|was|were) no (?!longer|more|less|better|worse|such)[a-z]+": "is not a",
    r"(?:of|to|in) so many": "this many, per",
    r"somebody|anybody|whoever|nobody(?='s| )": "someone, anyone who, no one",
    r"(?:go|goes|went|going) on": "continue",
    r"(?<!del )beside(?! *[(.,=])": "next to, besides",
    r"(?:one|a) (?:row|line|file|folder|run) a \w+": "per",
    r"pictures": "plots, images",
    r"carr(?:y|ied|ies|ying) out": "apply, execute, run",
    r"(?:stand|lie)s? (?:beside|in|on)": "is, are",
    r"in (?:the )?place of": "instead of",
    r"by what": "by its …",
    r"had from|be had": "available",
    r"persons": "people",
    r"is another than": "differs from",
    r"calls of (?:a )?(?:language )?models?": "calls to language models",
    r"(?:was|is|were) asked for": "requested, expected",
    r"what (?:broke|replaced|remains of|lies|stands|there is to)": "name the thing",
    r"(?:say|says|said) (?:so|why|how|whether)": "state this, the reason, …",
    r"(?:counts?|counted) with \d": "count as",
    r"as far as": "if",
    r"leads? out of": "points outside",
    r"one after the other": "one by one",
    r"(?:ends?|ended|exit) by (?:itself|themselves)": "on its own",
    r"again that": "again, even if …",
    r"any more(?=[.;,])": "anymore",
    r"named by (?:their|its) id": "named after their id",
    r"answers? of (?:the |a )?models?": "response",
    r"(?:agent|error|guide|image|task)s? of (?:mleredux|mlebench|Harbor|Inspect|Podman|Apptainer)": "mleredux agent",
    r"counts? with an? ": "counts for",
    r"(?:has|have) (?:replaced|moved elsewhere) since": "has since replaced",
    r"(?:the the|with with|of of|to to|in in|and and|is is|for for)": "one word",
    r"what was checked": "the check, all checks",
    r"(?:has|have) a meaning": "is meaningful",
    r"filters? of system calls": "system call filter",
    r"(?:process|thread|file|folder|mount|container)s? (?:was|were) left(?=[.;,])": "left behind",
    r"all overcome": "recovers from all",
    r"is there to|makes it(?=[.;,])|not of files": "can, creates it, from files",
}
"""Patterns that read as translated, in texts for users and docstrings; inside `…` are names."""
VAGUE = {"told", "asked", "said", "given", "found", "one", "made"}
MOST_VAGUE = 5
"""Variables and parameters with a vague name; the number may only fall."""
NOT_NAMES = {
    *(
        "ask",
        "asked",
        "asks",
        "beside",
        "comes",
        "elsewhere",
        "give",
        "given",
        "gone",
        "heard",
        "hunted",
        "lend",
        "lends",
    ),
    *("lent", "look", "mend", "news", "noted", "obey", "said", "say", "tell", "telling", "tells", "told", "wishes"),
}
"""First words of names of functions, methods and classes that say too little."""
KEPT_NAMES = {"Beside", "Judge.ask", "Study.given", "Study.told", "StageContext.say", "Trajectory.say", "Visit.say"}
KEPT_NAMES |= {"Scorer.asked"}
"""Public names that plugins call or implement, and former names, which work until 0.4."""
BRITISH = re.compile(
    r"\b\w*(?:colour|neighbour|licence|labell(?:ed|ing)|behaviour|judgement|tumour|artefact|(?:metre|litre)s?\b|favour|honour)"
    r"|\b(?:centre[sd]?|grey|towards|spelt|modelling|aluminium|analysed|analysing|harbours?|misspelt|labelled)\b"
    r"|\b\w*(?:normal|standard|recogn|container|memor|token|general|vector|util|initial|summar|penal|custom|character|serial"
    r"|random|categor|author|polar|priorit|sanit|synchron|visual|maxim|minim|optim|organ|parametr)is(?:e[ds]?|ers?|ing|ations?)\b",
    re.IGNORECASE,
)
"""Spelling is American, except for the command `analyse` and the state `cancelled`, whose names texts repeat."""
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_FILES = (
    "*.py",
    "*.md",
    "*.toml",
    "*.tmpl",
    "*.html",
    "*.j2",
    "*.sh",
    "*.yml",
    "*.yaml",
    ".ci/*",
    "*/src/*.txt",
    "examples/*",
)
_QUOTED = re.compile(r"(^|/)(LICENSE|test_english\.py|CODE_OF_CONDUCT\.md)$|/golden/")
_MADE = re.compile(r"^(changes/|docs/reference/api/)")
"""Generated pages, and fragments of the changelog."""


def _texts() -> list[str]:
    listed = subprocess.run(["git", "ls-files", *_FILES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if not _QUOTED.search(name)]


@pytest.mark.parametrize("phrase", GLOSSARY)
def test_the_glossary_is_kept(phrase: str) -> None:
    pattern = re.compile(rf"\b({phrase})\b", re.IGNORECASE)
    found = []
    for name in _texts():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert not found, f"say: {GLOSSARY[phrase]}\n" + "\n".join(found)


@cache
def _sentences() -> list[tuple[str, str]]:
    """Texts for users, with their places: pages and templates, without code, and strings of at least three words."""
    texts = []
    for name in _texts():
        path = ROOT / name
        if name.endswith(".md") and not _MADE.search(name):
            prose = re.sub(r"^( *)```.*?^\1```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
            plain = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]+>", "X", prose)
            texts += [(name, part) for part in re.split(r"\n\s*\n|\n\s*[-|]", plain)]
        elif name.endswith(".j2"):
            prose = re.sub(r"\{#.*?#\}|\{%.*?%\}|<[^>]+>", "\n\n", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            texts += [
                (name, part) for part in re.split(r"\n\s*\n", re.sub(r"\{\{.*?\}\}", "X", prose, flags=re.DOTALL))
            ]
        elif name.endswith("pyproject.toml"):
            texts += [
                (name, text) for text in re.findall(r'^description = "(.+)"', path.read_text("utf-8"), re.MULTILINE)
            ]
        elif name.endswith(".toml") and "/src/" in name:
            texts += [
                (name, re.sub(r"`[^`]*`", "X", text))
                for text in re.findall(r'= "(.+)"$', path.read_text("utf-8"), re.M)
            ]
        elif name.endswith(".txt"):
            texts += [(name, re.sub(r"`[^`]*`", "X", part)) for part in re.split(r"\n\s*\n", path.read_text("utf-8"))]
        elif name.endswith(".sh") and "/src/" in name:
            texts += [(name, said) for said in re.findall(r'echo "([^"]+)" >&2', path.read_text(encoding="utf-8"))]
        elif name.startswith("examples/") and not name.endswith((".py", ".ipynb", ".csv")):
            comments = re.sub(r"\n *# ?", "\n", path.read_text(encoding="utf-8"))
            texts += [
                (name, re.sub(r"`[^`]*`", "X", line)) for line in re.findall(r"(?:#|summary:|^)(.+)", comments, re.M)
            ]
        elif name.endswith(".py") and "/src/" in name:
            texts += [(f"{name}:{line}", text) for line, text in _strings(ast.parse(path.read_text(encoding="utf-8")))]
    return [(place, " ".join(text.split())) for place, text in texts]


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield strings of at least three words that are not docstrings; f-strings with `X` for each value."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in docstrings | parts:
            continue
        match node:
            case ast.Constant(value=str(text)):
                pass
            case ast.JoinedStr(values=values):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in values)
            case _:
                continue
        if text.count(" ") >= 2:
            yield node.lineno, re.sub(r"`[^`]*`", "X", text)


@cache
def _docstrings() -> list[tuple[str, str]]:
    """Return docstrings, those of attributes included, with their places and without names of arguments."""
    return [
        (f"{name}:{node.lineno}", " ".join(re.sub(r"`[^`]*`|^ *\w+:(?= )", "X", text, flags=re.MULTILINE).split()))
        for name in _texts()
        if name.endswith(".py") and "/src/" in name
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str)
    ]


@pytest.mark.parametrize("phrase", PLAIN)
def test_texts_do_not_read_as_translated(phrase: str) -> None:
    pattern = re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE)
    texts = [*_sentences(), *_docstrings()]
    faults = [(place, match[0]) for place, text in texts if (match := pattern.search(text))]
    assert len(_sentences()) > 5000 and len(_docstrings()) > 9000
    assert not faults, f"say: {PLAIN[phrase]}\n" + "\n".join(f"{place}: {phrase}" for place, phrase in faults)


def test_nouns_after_counts_agree_with_them() -> None:
    nouns = "task|run|submission|check|finding|cell|call|feature|node|model|student|version|page|seed|arm|file|step"
    pattern = re.compile(rf"\{{[^{{}}\"]*\}} of \{{[^{{}}\"]*\}} (?:{nouns})s\b(?!\()")
    constant = re.compile(r"\{[A-Z_]+\} of ")
    filled = re.compile(rf"\{{\{{[^{{}}]*\}}\}} of \{{\{{[^{{}}]*\}}\}} (?:{nouns}|pair)s\b")
    found = [
        f"{name}:{number}: {match[0]}"
        for name in _texts()
        if name.endswith((".py", ".j2")) and "/src/" in name
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if (match := (filled if name.endswith(".j2") else pattern).search(line)) and not constant.match(match[0])
    ]
    assert not found, "use mleredux.models.formats.counted\n" + "\n".join(found)


def test_spelling_is_american() -> None:
    texts = [*_sentences(), *_docstrings()]
    faults = [f"{place}: {match[0]}" for place, text in texts if (match := BRITISH.search(text))]
    assert not faults, "\n".join(faults)


def test_names_of_variables_say_what_they_hold() -> None:
    vague = 0
    for name in _texts():
        if name.endswith(".py") and "/src/" in name:
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
                match node:
                    case ast.Name(id=word, ctx=ast.Store()) | ast.arg(arg=word) if word in VAGUE:
                        vague += 1
    assert 0 < vague <= MOST_VAGUE, f"{vague} variables are named {', '.join(sorted(VAGUE))}; name what they hold"


def test_names_of_functions_and_classes_are_those_of_the_field() -> None:
    names = [
        (name, node.name, f"{owner.name}.{node.name}" if owner else node.name)
        for name in _texts()
        if name.endswith(".py") and "/src/" in name
        for owner, node in _definitions(ast.parse((ROOT / name).read_text(encoding="utf-8")))
    ]
    kept = {qualified for _, _, qualified in names} & KEPT_NAMES
    methods = {name.rpartition(".")[2] for name in KEPT_NAMES if "." in name}
    vague = [
        f"{place}: {qualified}"
        for place, name, qualified in names
        if name.strip("_").split("_")[0].lower() in NOT_NAMES and not name.strip("_").startswith(("give_up", "ask_to"))
        if qualified not in KEPT_NAMES and not ("." in qualified and name in methods)
    ]
    assert len(names) > 8000 and kept == KEPT_NAMES and not vague, "\n".join(vague)


def _definitions(tree: ast.AST, owner: ast.ClassDef | None = None) -> Iterator[tuple[ast.ClassDef | None, Definition]]:
    """Yield definitions, each with the class that it is directly in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            yield owner, node
        yield from _definitions(node, node if isinstance(node, ast.ClassDef) else owner if owner is tree else None)
