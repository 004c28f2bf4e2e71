"""IceCube - Neutrinos in Deep Ice: pulses of millions of events in parquet batches, which are held out as a unit."""

from ...blocks import Metric, Parquet, Workspace, competition, read_parquet, recipe

META, TEST_META, ANGLES = "train_meta.parquet", "test_meta.parquet", ["azimuth", "zenith"]
COLUMNS = ("batch_id", "event_id", "first_pulse_index", "last_pulse_index", *ANGLES)


@recipe("event_id", ("azimuth", "zenith"))
def prepare(w: Workspace) -> None:
    """Split the batches; events follow in raw order."""
    train, test = w.split_groups(read_parquet(w.path(META), META, COLUMNS), "batch_id")
    tree = w.tree("train")
    batches = {int(name.removesuffix(".parquet").rpartition("_")[2]): name for name in tree.names(".parquet")}
    for part, events in (("train", train), ("test", test)):
        numbers = set(events["batch_id"].unique())
        w.public(part, tree.pick([name for number, name in batches.items() if number in numbers]))
    w.public(META, Parquet(train))
    w.public(TEST_META, Parquet(test.drop(columns=ANGLES)))
    w.public("sensor_geometry.csv", w.file("sensor_geometry.csv"))
    w.public("sample_submission.csv", test[["event_id"]].assign(azimuth=1, zenith=1))
    w.private("test.csv", test[["event_id", *ANGLES]])


COMPETITION = competition(
    "icecube-neutrinos-in-deep-ice",
    prepare=prepare,
    extra_columns=False,
    metric=Metric(grader="mean-angular-error"),
    unstable=(META, TEST_META),
)
