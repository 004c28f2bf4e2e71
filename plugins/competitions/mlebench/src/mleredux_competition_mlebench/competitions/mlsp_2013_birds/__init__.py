"""MLSP 2013 Bird Classification Challenge: forest recordings, and data derived from them."""

from functools import partial

from ...blocks import Metric, Table, Text, Workspace, competition, recipe

FOLDER = "mlsp_contest_dataset"
SPECIES, SHARE = 19, 0.2
LABELS = "essential_data/rec_labels_test_hidden.txt"
PER_RECORDING = {
    "essential_data/src_wavs": ".wav",
    "supplemental_data/filtered_spectrograms": ".bmp",
    "supplemental_data/spectrograms": ".bmp",
    "supplemental_data/supervised_segmentation": ".bmp",
}
EXAMPLES = "supplemental_data/segmentation_examples"
AS_THEY_ARE = (
    "essential_data/species_list.txt",
    "supplemental_data/segment_clusters.bmp",
    "supplemental_data/segment_mosaic.bmp",
)
SEGMENTS = ("histogram_of_segments", "segment_features", "segment_rectangles")


def cells(recordings: dict[int, set[int]]) -> Table:
    """Return a row per recording and species, with 1 if the species is heard."""
    import pandas as pd

    pairs = [(number * 100 + s, int(s in heard)) for number, heard in recordings.items() for s in range(SPECIES)]
    return pd.DataFrame(pairs, columns=["Id", "Probability"])


@recipe("Id", "Probability", answers="answers.csv")
def prepare(w: Workspace, by_day: bool = False) -> None:
    """Renumber Kaggle's training recordings, the only labeled ones, and draw the test set from them.

    Args:
        by_day: Whether to hold out recordings of one site and day together, and to keep the tables' own headers.
    """

    def table(name: str, *columns: str) -> Table:
        return w.table(f"{FOLDER}/essential_data/{name}", columns, archive=f"{FOLDER}.zip")

    tree = w.tree(f"{FOLDER}.zip", inside=FOLDER)
    folds, names = table("CVfolds_2.txt", "rec_id", "fold"), table("rec_id2filename.txt", "rec_id", "filename")
    kept = folds[folds["fold"] == 0].reset_index(drop=True)
    if by_day:
        # `PC13_20090531_050000_0020` is a recording at site PC13 on 31 May 2009
        day = names.set_index("rec_id")["filename"].str.extract(r"^([^_]+_[^_]+)", expand=False)
        held_out = set(w.split_groups(kept, kept["rec_id"].map(day), SHARE)[1].index)
    else:
        held_out = set(kept.sample(frac=w.settings.test_size or SHARE, random_state=w.seed(0)).index)
    new = {old: number for number, old in enumerate(kept["rec_id"])}

    def lines(name: str) -> list[tuple[int, str]]:
        """Yield, for each line about a kept recording, its new number and the rest of the line with its comma."""
        split = (line.partition(",") for line in tree.read(name).decode().splitlines()[1:] if line.strip())
        return [(new[int(old)], comma + rest) for old, comma, rest in split if int(old) in new]

    labels = lines(LABELS)
    shown = [(n, ",?" if n in held_out else rest if rest.strip(", ") else "") for n, rest in labels]
    answers = {
        number: {int(label) for label in rest.split(",") if label.strip()}
        for number, rest in labels
        if number in held_out
    }
    names = names[names["rec_id"].isin(kept["rec_id"])]
    names = names.assign(rec_id=names["rec_id"].map(new))
    w.public("essential_data/CVfolds_2.txt", kept.assign(rec_id=kept.index, fold=kept.index.isin(held_out).astype(int)))
    w.public("essential_data/rec_id2filename.txt", names)
    w.public(LABELS, Text("rec_id,[labels]\n" + "".join(f"{number}{rest}\n" for number, rest in shown)))
    for name in SEGMENTS:
        path = f"supplemental_data/{name}.txt"
        # all three get the header of the first, as published
        header = tree.read(path).decode().splitlines()[0] if by_day else "rec_id,[histogram of segment features]"
        w.public(path, Text(f"{header}\n" + "".join(f"{number}{rest}\n" for number, rest in lines(path))))
    examples = names["filename"][(EXAMPLES + "/" + names["filename"] + ".bmp").isin(set(tree.files))]
    files = [f"{folder}/{name}{end}" for folder, end in PER_RECORDING.items() for name in names["filename"]]
    w.public("", tree.pick([*AS_THEY_ARE, *files, *(EXAMPLES + "/" + examples + ".bmp")]))
    w.public("sample_submission.csv", cells({number: set() for number in sorted(held_out)}))
    w.private("answers.csv", cells(answers))


COMPETITION = competition(
    "mlsp-2013-birds",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    fixed=partial(prepare, by_day=True),
)
