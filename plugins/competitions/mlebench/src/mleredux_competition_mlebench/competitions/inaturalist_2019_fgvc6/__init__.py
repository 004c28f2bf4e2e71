"""iNaturalist 2019 at FGVC6: 1,010 species in uncompressed tar archives that are named like compressed ones."""

from typing import IO

from ...blocks import IndentedJson, Metric, Tree, Workspace, competition, one_pass, recipe, write_tars
from ...blocks.per_category import of_pairs, split_categories

TOP = "train_val2019"
SAMPLE_LABEL = 654


def pack(w: Workspace, tree: Tree, archives: dict[str, dict[str, str]]) -> None:
    """Pack images into tar archives, in a single pass through the raw ones.

    Args:
        archives: New names by names in the tree, for each public archive.
    """
    chosen = [tree.pick(names.keys(), names.values()) for names in archives.values()]

    def write(*files: IO[bytes]) -> None:
        write_tars(dict(zip(files, chosen, strict=True)))

    for archive, content in zip(archives, one_pass(write, len(archives)), strict=True):
        w.public(archive, content)


@recipe("id", "predicted", answers="answers.csv", sample="kaggle_sample_submission.csv")
def prepare(w: Workspace) -> None:
    """Split each species; ids stay unchanged, and test images lose their folders."""
    import pandas as pd

    document, tree = w.json("train2019.json"), w.tree(f"{TOP}.tar.gz", inside=TOP)
    train, test = split_categories(w, document, 0.12)
    old = {
        part: [pair.image["file_name"].removeprefix(f"{TOP}/") for pair in pairs]
        for part, pairs in (("train", train), ("test", test))
    }
    bare = [name.rpartition("/")[2] for name in old["test"]]
    pack(
        w,
        tree,
        {
            f"{TOP}.tar.gz": {name: name for name in old["train"]},
            "test2019.tar.gz": dict(zip(old["test"], bare, strict=True)),
        },
    )
    hidden = {key: value for key, value in document.items() if key not in ("annotations", "categories")}
    hidden["images"] = [{**pair.image, "file_name": f"test2019/{name}"} for pair, name in zip(test, bare, strict=True)]
    answers = pd.DataFrame({"id": [pair.image["id"] for pair in test], "predicted": [pair.category for pair in test]})
    w.public("train2019.json", IndentedJson(of_pairs(document, train)))
    w.public("test2019.json", IndentedJson(hidden))
    w.public("val2019.json", w.file("val2019.json"))
    w.answers("answers.csv", "kaggle_sample_submission.csv", answers, predicted=SAMPLE_LABEL)


COMPETITION = competition(
    "inaturalist-2019-fgvc6",
    prepare=prepare,
    types={"predicted": "string"},
    metric=Metric(grader="error-rate", options={"labels": "first-integer"}),
)
