"""OpenVaccine: five properties of every base of RNA molecules."""

from functools import partial

from mleredux.errors import DataError

from ...blocks import Column, JsonLines, Metric, Table, Workspace, competition, corrected, linked, recipe, renumbered

TARGETS = ("reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C")
SCORED = {"scored": ["reactivity", "deg_Mg_pH10", "deg_Mg_50C"], "keep": "keep"}
SHARE, ALIKE = 0.1, 0.8
TEN_DECIMALS = {"float_format": "%.10f"}


def bases(test: Table) -> Table:
    """Return a row per base of every molecule; unmeasured bases have 0 and are not scored.

    Raises:
        DataError: A molecule's measurements contradict its declared length.
    """
    import numpy as np
    import pandas as pd

    lengths, measured = test["seq_length"].to_numpy(), test["seq_scored"].to_numpy()
    if (measured >= lengths).any() or any((test[target].str.len() != measured).any() for target in TARGETS):
        raise DataError("Some molecules of train.json lack measurements.", hint="Get the raw data again.")
    positions = np.concatenate([np.arange(length) for length in lengths])
    keep = positions < np.repeat(measured, lengths)
    names = pd.Series(np.repeat(test["id"].to_numpy(), lengths))
    table = pd.DataFrame({"id_seqpos": names + "_" + pd.Series(positions).astype(str)})
    for target in TARGETS:
        values = np.zeros(len(table))
        values[keep] = np.concatenate(test[target].to_numpy())
        table[target] = values
    return table.assign(keep=keep)


def families(sequences: Column) -> Column:
    """Return the family of each sequence: sequences that agree in at least four of five positions are joined."""
    import numpy as np
    import pandas as pd

    bases = sequences.str.ljust(sequences.str.len().max()).to_numpy(dtype="S")
    return pd.Series(linked(bases.view(np.uint8).reshape(len(bases), -1), ALIKE), index=sequences.index)


@recipe("id_seqpos", TARGETS)
def prepare(w: Workspace, by_family: bool = False) -> None:
    """Draw the test set, a tenth of all molecules, from those of good quality.

    Args:
        by_family: Whether to hold out nearly equal molecules together.
    """
    import pandas as pd

    rows, unlabelled = (pd.read_json(w.path(f"{name}.json"), lines=True) for name in ("train", "test"))
    w.table("sample_submission.csv", ("id_seqpos", *TARGETS))
    if by_family:
        train, test = w.split_groups(rows, families(rows["sequence"]), SHARE)
        test = test[test["SN_filter"] > 0]
    else:
        good = rows[rows["SN_filter"] > 0]
        drawn = good.sample(n=int((w.settings.test_size or SHARE) * len(rows)), random_state=w.seed(0))
        is_test = rows.index.isin(drawn.index)
        train, test = rows[~is_test], rows[is_test]
    train, test = renumbered(train, "index"), renumbered(test, "index")
    answers = bases(test)
    w.public("train.json", JsonLines(train))
    w.public("test.json", JsonLines(test[list(unlabelled.columns)]))
    w.public("sample_submission.csv", answers[["id_seqpos"]].assign(**dict.fromkeys(TARGETS, 0.0)), **TEN_DECIMALS)
    w.private("test.csv", answers, **TEN_DECIMALS)


COMPETITION = competition(
    "stanford-covid-vaccine",
    prepare=prepare,
    metric=Metric(grader="mcrmse", options={**SCORED, "keep_by_file_row": True}),
    fixed=corrected(
        partial(prepare, by_family=True),
        metric=Metric(grader="mcrmse", options=SCORED),
    ),
)
