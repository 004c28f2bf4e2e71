"""Billion Word Imputation: sentences with one word missing."""

import io
from collections.abc import Iterator
from functools import partial
from typing import IO

from ...blocks import PRIVATE_SAMPLE, Metric, Text, Tree, Workspace, Written, Zip, competition, recipe

SENTENCES, TEST = "train_v2.txt", "test_v2.txt"
SHARE = 0.01
HEADER = '"id","sentence"\n'


def lines(tree: Tree) -> Iterator[str]:
    """Yield the sentences with their line endings; any carriage return ends a line too, as in Python's text mode."""
    tree.need([SENTENCES])
    for _, content in tree.stream({SENTENCES}):
        yield from io.TextIOWrapper(content, encoding="utf-8")


@recipe("id", "sentence", sample=PRIVATE_SAMPLE)
def prepare(w: Workspace, repeats: bool = True) -> None:
    """Draw lines and words from one random stream; the training lines are reread for writing.

    Args:
        repeats: Whether repetitions of held-out sentences may stay in the training set, as in the published task.
    """
    import numpy as np

    tree = w.tree(f"{SENTENCES}.zip")
    random = np.random.RandomState(w.seed(0))
    share = w.settings.test_size or SHARE
    held_out: set[int] = set()
    sentences: set[str] = set()
    truth, damaged = [HEADER], [HEADER]
    for number, line in enumerate(lines(tree)):
        if random.random_sample() > share:
            continue
        sentence = line.strip().replace('"', '""')
        words = sentence.split()
        if len(words) > 2:
            del words[random.randint(1, len(words) - 1)]
            truth.append(f'{len(held_out)},"{sentence}"\n')
            damaged.append(f'{len(held_out)},"{" ".join(words)}"\n')
            held_out.add(number)
            if not repeats:
                sentences.add(line.strip())

    def write_train(file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")  # gather lines: writes to archives are slow
        kept = (line for number, line in enumerate(lines(tree)) if number not in held_out)
        text.writelines(kept if repeats else (line for line in kept if line.strip() not in sentences))
        text.flush()
        text.detach()

    sample = Text("".join(damaged))
    w.public(f"{SENTENCES}.zip", Zip({SENTENCES: Written(write_train)}))
    w.public(f"{TEST}.zip", Zip({TEST: sample}))
    w.private("test.csv", Text("".join(truth)))
    w.private("sample_submission.csv", sample)


COMPETITION = competition(
    "billion-word-imputation",
    prepare=prepare,
    metric=Metric(grader="levenshtein"),
    fixed=partial(prepare, repeats=False),
)
