"""OSIC Pulmonary Fibrosis Progression: a forecast of lung volume for every week of every test patient."""

from ...blocks import Metric, Table, Workspace, competition, corrected, recipe

COLUMNS = ("Patient", "Weeks", "FVC", "Percent", "Age", "Sex", "SmokingStatus")


def grid(test: Table) -> Table:
    """Cross all test patients with all weeks between the first and the last visit of any patient, and join the
    visits.
    """
    import pandas as pd

    test = test.drop_duplicates(["Patient", "Weeks"])  # if there are two visits in one week
    weeks = range(test["Weeks"].min(), test["Weeks"].max() + 1)
    index = pd.MultiIndex.from_product([test["Patient"].unique(), weeks], names=["Patient", "Weeks"])
    answers = index.to_frame(index=False).merge(test, on=["Patient", "Weeks"], how="left")
    answers["Patient_Week"] = answers["Patient"] + "_" + answers["Weeks"].astype(str)
    return answers.assign(Confidence=100)


@recipe("Patient_Week", ("FVC", "Confidence"))
def prepare(w: Workspace) -> None:
    """Hold out patients, except for their first visit, which is public."""
    train, test = w.split_groups(w.table("train.csv", COLUMNS), "Patient", joined=True)
    answers = grid(test)
    scans = w.tree("train")
    w.public("train.csv", train)
    w.public("test.csv", test.sort_values("Weeks").groupby("Patient", as_index=False).first()[list(COLUMNS)])
    w.public("sample_submission.csv", answers[["Patient_Week"]].assign(FVC=2000, Confidence=100))
    w.private("test.csv", answers)
    for part, rows in (("train", train), ("test", test)):
        w.public(part, scans.pick_folders(rows["Patient"].unique()))


COMPETITION = competition(
    "osic-pulmonary-fibrosis-progression",
    prepare=prepare,
    ids_fixed=False,
    metric=Metric(grader="laplace-log-likelihood", options={"last": 3, "missing_rows": "drop"}),
    fixed=corrected(
        metric=Metric(grader="laplace-log-likelihood", options={"last": 3}),
        submission={"ids_fixed": True},
    ),
)
