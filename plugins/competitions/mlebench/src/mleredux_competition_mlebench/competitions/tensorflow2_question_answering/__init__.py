"""TensorFlow 2.0 Question Answering: long and short answers to questions in whole encyclopedia articles."""

import json
import re
from functools import partial
from typing import IO, Any

from ...blocks import Metric, Table, Workspace, competition, corrected, one_pass, recipe
from ...blocks.splits import split_positions

RECORDS = "simplified-nq-train.jsonl"
ADDRESS = re.compile(rb'"document_url":\s*"((?:[^"\\]|\\.)*)"')
BLOCK, SHARE = 1_000, 0.1
QUESTION_COLUMNS = ["example_id", "question_text", "document_text", "long_answer_candidates"]


def span(tokens: dict[str, Any]) -> str:
    """Format a range of tokens as in submissions."""
    return f"{tokens['start_token']}:{tokens['end_token']}"


def answers(annotation: dict[str, Any]) -> tuple[str, str]:
    """Return the short and the long answer of an annotation; empty if there is none."""
    word, ranges, passage = annotation["yes_no_answer"], annotation["short_answers"], annotation["long_answer"]
    short = word if word != "NONE" else span(ranges[0]) if ranges else ""
    return short, "" if passage["start_token"] == -1 else span(passage)


def submission_rows(test: Table) -> Table:
    """Return two rows per record: the short answer, then the long one."""
    import pandas as pd

    kinds = (("short", "long"),) * len(test)
    ids = [f"{name}_{kind}" for name, both in zip(test["example_id"], kinds, strict=True) for kind in both]
    texts = [text for annotations in test["annotations"] for text in answers(annotations[0])]
    return pd.DataFrame({"example_id": ids, "PredictionString": texts})


def held_out(w: Workspace) -> set[str]:
    """Return a tenth of the articles, found in a separate pass that reads URLs only."""
    with w.path(RECORDS).open("rb") as lines:
        articles = dict.fromkeys(address[1] for line in lines for address in ADDRESS.finditer(line))
    return {json.loads(b'"' + address + b'"') for address in w.split(list(articles), SHARE)[1]}


def write(w: Workspace, seed: int, by_article: bool, *files: IO[bytes]) -> None:
    """Split the records in a single pass: every block of lines is split separately, with the same seed.

    Args:
        by_article: Whether to hold out articles as a unit instead.
    """
    import pandas as pd

    articles = held_out(w) if by_article else set()

    train_file, test_file, answers_file, sample_file, gold_file = files
    with pd.read_json(w.path(RECORDS), lines=True, chunksize=BLOCK) as blocks:
        for number, block in enumerate(blocks):
            rows = block.assign(example_id=block["example_id"].astype(str))
            if by_article:
                is_test = rows["document_url"].isin(articles)
                train, test = rows[~is_test], rows[is_test]
            else:
                positions = split_positions(len(rows), test_size=w.settings.test_size or SHARE, seed=seed)
                train, test = (rows.iloc[chosen] for chosen in positions)
            gold = submission_rows(test)
            for part, file in ((train, train_file), (test[QUESTION_COLUMNS], test_file), (test, answers_file)):
                if len(part):
                    file.write(part.to_json(orient="records", lines=True).encode())
            for part, file in ((gold.assign(PredictionString=""), sample_file), (gold, gold_file)):
                file.write(part.to_csv(index=False, header=number == 0, lineterminator="\n").encode())


@recipe("example_id", "PredictionString", answers="test.jsonl")
def prepare(w: Workspace, by_article: bool = False) -> None:
    """Record the five files that are written together."""
    w.path(RECORDS)
    train, test, held_out, sample, gold = one_pass(partial(write, w, w.seed(0), by_article), 5)
    w.public(RECORDS, train)
    w.public("simplified-nq-test.jsonl", test)
    w.public("sample_submission.csv", sample)
    w.private("test.jsonl", held_out)
    w.private("gold_submission.csv", gold)


COMPETITION = competition(
    "tensorflow2-question-answering",
    prepare=prepare,
    metric=Metric(grader="natural-questions-f1"),
    fixed=corrected(
        partial(prepare, by_article=True),
        metric=Metric(grader="natural-questions-f1", options={"blank": "ignored"}),
    ),
)
