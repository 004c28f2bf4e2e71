"""Random Acts of Pizza: records of requests as JSON."""

from functools import partial

from mleredux.errors import DataError

from ...blocks import Json, KnownLeak, Metric, Workspace, Zip, competition, corrected, recipe

ID, TARGET, GIVER = "request_id", "requester_received_pizza", "giver_username_if_known"


@recipe(ID, TARGET, sample="sampleSubmission.csv")
def prepare(w: Workspace, givers: bool = True) -> None:
    """Split the training records in the ratio of the raw files; remove fields that the raw test file lacks.

    Args:
        givers: Whether records name the giver, as in the published task, although only successful requests have one.
    """
    import pandas as pd

    records, unlabelled = w.json("train.json"), w.json("test.json")
    if not records or not unlabelled or not {ID, TARGET} <= records[0].keys():
        raise DataError(f"train.json and test.json must be lists of records with {ID} and {TARGET}.")
    if not givers:
        records, unlabelled = (
            [{field: value for field, value in record.items() if field != GIVER} for record in part]
            for part in (records, unlabelled)
        )
    train, test = w.split(records, len(unlabelled) / (len(records) + len(unlabelled)))
    fields = list(unlabelled[0])
    for name, part in (("train", train), ("test", [{field: record[field] for field in fields} for record in test])):
        document = Json(part, {"indent": 4})
        w.public(f"{name}.json", document)
        w.public(f"{name}.zip", Zip({f"{name}.json": document}))
    answers = pd.DataFrame({ID: [record[ID] for record in test], TARGET: [int(record[TARGET]) for record in test]})
    w.answers("test.csv", "sampleSubmission.csv", answers, **{TARGET: 0})


COMPETITION = competition(
    "random-acts-of-pizza",
    prepare=prepare,
    metric=Metric(grader="roc-auc", options={"bounds": [0, 1]}),
    known_leaks=(KnownLeak(columns=(GIVER,), explanation="Only requesters who received a pizza have a giver."),),
    fixed=corrected(
        partial(prepare, givers=False),
        known_leaks=(),
    ),
)
