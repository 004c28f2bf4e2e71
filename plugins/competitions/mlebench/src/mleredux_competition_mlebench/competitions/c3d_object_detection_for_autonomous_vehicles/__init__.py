"""Lyft 3D Object Detection for Autonomous Vehicles: whole drives are held out of JSON tables linked by tokens."""

from functools import partial
from typing import Any

from mleredux.errors import DataError

from ...blocks import Json, Metric, Workspace, by_group, competition, corrected, recipe

Records = list[dict[str, Any]]
SAME = ("attribute", "category", "sensor", "visibility")
MAP = "map_raster_palo_alto.png"
BOX = 8


def with_confidence(boxes: Any) -> str:
    """Return a sample's boxes, each preceded by a confidence of 1; numbers keep their spelling."""
    tokens = boxes.split(" ") if isinstance(boxes, str) else []
    if not tokens or len(tokens) % BOX:
        raise DataError(f"train.csv has boxes that do not have {BOX} values.", hint="Get the raw data again.")
    return " ".join(" ".join(["1.0", *tokens[n : n + BOX]]) for n in range(0, len(tokens), BOX))


def pick(records: Records, key: str, values: set[Any]) -> Records:
    """Return the records whose key has one of the values, in raw order."""
    return [record for record in records if record[key] in values]


@recipe("Id", "PredictionString")
def prepare(w: Workspace, corrected: bool = False) -> None:
    """Split the logs; samples, sensor files, calibrations, poses and annotations follow.

    Args:
        corrected: Whether each map lists only the logs of its own part, and test samples do not reveal the number of
            their annotations.
    """
    names = ("log", "sample", "sample_data", "calibrated_sensor", "ego_pose", "scene", "map", "sample_annotation")
    raw: dict[str, Records] = {name: w.json(f"train_data/{name}.json") for name in (*names, "instance")}
    boxes = w.table("train.csv", ("Id", "PredictionString"))
    logs = dict(zip(("train", "test"), w.split([log["token"] for log in raw["log"]], 0.2), strict=True))
    samples = {part: pick(raw["sample"], "scene_token", set(tokens)) for part, tokens in logs.items()}
    ids = {part: {sample["token"] for sample in rows} for part, rows in samples.items()}
    known = ids["train"] | ids["test"]
    listed = {row["sample_token"] for row in raw["sample_data"]}
    if len(raw["sample"]) != len(known) or listed - known or known - set(boxes["Id"]):
        raise DataError("train.csv and the tables of train_data do not match.", hint="Get the raw data again.")
    sensors, poses = ({row["token"]: row for row in raw[name]} for name in ("calibrated_sensor", "ego_pose"))
    trees = {kind: w.tree(f"train_{kind}") for kind in ("images", "lidar")}
    maps = w.tree("train_maps").pick([MAP])
    for part, tokens in logs.items():
        files = pick(raw["sample_data"], "sample_token", ids[part])
        tables = {
            "log": pick(raw["log"], "token", set(tokens)),
            "sample": samples[part],
            "sample_data": files,
            "calibrated_sensor": [
                sensors[token] for token in dict.fromkeys(file["calibrated_sensor_token"] for file in files)
            ],
            "ego_pose": [poses[file["ego_pose_token"]] for file in files],
            "scene": pick(raw["scene"], "log_token", set(tokens)),
            # both parts list the test logs: the published preparation fills one shared object twice
            "map": [{**place, "log_tokens": tokens if corrected else logs["test"]} for place in raw["map"]],
        }
        if corrected and part == "test":
            tables["sample"] = [{k: v for k, v in row.items() if k != "anns"} for row in samples[part]]
        if part == "train":
            tables["sample_annotation"] = pick(raw["sample_annotation"], "sample_token", ids[part])
            seen = {annotation["instance_token"] for annotation in tables["sample_annotation"]}
            tables["instance"] = pick(raw["instance"], "token", seen)
        for name, records in tables.items():
            w.public(f"{part}_data/{name}.json", Json(records))
        for name in SAME:
            w.public(f"{part}_data/{name}.json", w.file(f"train_data/{name}.json"))
        paths = [file["filename"].split("/") for file in files]
        for kind, tree in trees.items():
            w.public(f"{part}_{kind}", tree.pick([name for folder, name in paths if folder == kind]))
        w.public(f"{part}_maps", maps)
    train, test = by_group(boxes, "Id", ids["train"], ids["test"])
    w.public("train.csv", train)
    w.public("sample_submission.csv", test.assign(PredictionString=""))
    w.private("test.csv", test.assign(PredictionString=[with_confidence(cell) for cell in test["PredictionString"]]))


COMPETITION = competition(
    "3d-object-detection-for-autonomous-vehicles",
    prepare=prepare,
    metric=Metric(grader="map-boxes-3d"),
    fixed=corrected(
        partial(prepare, corrected=True),
        metric=Metric(grader="map-boxes-3d", options={"absent_classes_count": True}),
    ),
)
