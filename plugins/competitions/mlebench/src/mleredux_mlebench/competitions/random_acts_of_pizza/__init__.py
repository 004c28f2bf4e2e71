"""Random Acts of Pizza: records of requests as JSON."""

from __future__ import annotations

from mleredux.errors import DataError

from mleredux_mlebench.blocks import Json, Metric, Workspace, Zip, competition

ID, TARGET = "request_id", "requester_received_pizza"


def prepare(w: Workspace) -> None:
    """Split the training records in the ratio of the raw files; hide fields that the raw test file lacks."""
    import pandas as pd

    records, unlabelled = w.json("train.json"), w.json("test.json")
    if not records or not unlabelled or not {ID, TARGET} <= records[0].keys():
        raise DataError(f"train.json and test.json must be lists of records with {ID} and {TARGET}.")
    train, test = w.split(records, len(unlabelled) / (len(records) + len(unlabelled)))
    fields = list(unlabelled[0])
    for name, part in (
        ("train", train),
        ("test", [{field: record[field] for field in fields} for record in test]),
    ):
        document = Json(part, {"indent": 4})
        w.public(f"{name}.json", document)
        w.public(f"{name}.zip", Zip({f"{name}.json": document}))
    answers = pd.DataFrame({ID: [record[ID] for record in test], TARGET: [int(record[TARGET]) for record in test]})
    w.private("test.csv", answers)
    w.public("sampleSubmission.csv", answers.assign(**{TARGET: 0}))


COMPETITION = competition(
    "random-acts-of-pizza",
    prepare=prepare,
    sample="sampleSubmission.csv",
    id_columns=(ID,),
    target_columns=(TARGET,),
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
)
