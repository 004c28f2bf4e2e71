"""Vesuvius Challenge - Ink Detection: X-ray volumes of three papyrus fragments; the third is the test set."""

import struct

from mleredux.errors import DataError

from ...blocks import Metric, Workspace, competition, corrected, recipe
from ...kaggle import KaggleLeaderboard

ID = "vesuvius-challenge-ink-detection"
TEST, NEW_NAME = "3", "a"
INK = "inklabels_rle.csv"
HIDDEN = ("inklabels.png", INK, "ir.png")
_PNG_HEAD = ">8s4x4sII"


def png_size(head: bytes) -> tuple[int, int]:
    """Return width and height in pixels from the first bytes of a PNG file (https://www.w3.org/TR/png/#11IHDR)."""
    try:
        signature, kind, width, height = struct.unpack_from(_PNG_HEAD, head)
    except struct.error:
        signature, kind, width, height = b"", b"", 0, 0
    if (signature, kind) != (b"\x89PNG\r\n\x1a\n", b"IHDR"):
        raise DataError(f"train/{TEST}/ir.png is not a PNG image.", hint="Get the raw data again.")
    return width, height


@recipe("Id", "Predicted", answers=INK)
def prepare(w: Workspace) -> None:
    """Remove the labels and the photograph of the third fragment."""
    tree = w.tree("train")
    labels = w.table(f"train/{TEST}/{INK}", ("Id", "Predicted"))
    with w.path(f"train/{TEST}/ir.png").open("rb") as file:
        width, height = png_size(file.read(struct.calcsize(_PNG_HEAD)))
    if len(labels) != 1:
        raise DataError(f"train/{TEST}/{INK} has {len(labels)} rows instead of one.", hint="Get the raw data again.")
    gold = labels.assign(Id=NEW_NAME)
    w.public("train", tree.pick_folders(["1", "2"]))
    w.public(f"test/{NEW_NAME}", tree.inside(TEST).all(lambda name: name.rpartition("/")[2] not in HIDDEN))
    w.public("sample_submission.csv", gold[["Id"]].assign(Predicted="1 1 5 1"))
    w.private(INK, gold.assign(width=width, height=height))
    w.private("gold_submission.csv", gold)


METRIC = Metric(grader="mask-fbeta", options={"beta": 0.5, "height": "height", "width": "width", "match": "same-order"})

COMPETITION = competition(
    ID,
    prepare=prepare,
    extra_columns=False,
    metric=METRIC,
    public_board=True,
    # the final leaderboard is fetched rather than shipped, and has no published thresholds
    fixed=corrected(
        metric=METRIC,
        thresholds=None,
        leaderboard=None,
        fetch_leaderboard=KaggleLeaderboard(ID),
    ),
)
