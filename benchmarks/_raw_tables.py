"""Raw data of the ten largest tables in the form that preparation reads, written in pieces to limit memory.

Images, videos and geometry files next to the tables are small files, just enough for preparation to succeed, as many as
the tables' rows need. Written with PyArrow if it is installed, because it is several times faster.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from _tables import (
    CUSTOMERS,
    Table,
    articles,
    breaths,
    contacts,
    frequent,
    hexadecimal,
    questions,
    rides,
    scaled,
    sentences,
    tokens,
    vocabulary,
)

PIECE = 1_000_000
"""Number of rows that are created at once."""


def pieces(rows: int, size: int = PIECE) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each piece."""
    for first in range(0, rows, size):
        yield first, min(size, rows - first)


def write_csv(file: IO[bytes], frames: Iterable[pd.DataFrame], *, quoted: bool = False) -> None:
    """Write the pieces of one table as CSV; if `quoted`, with all texts in quotes."""
    for number, frame in enumerate(frames):
        try:
            import pyarrow as pa
            from pyarrow import csv
        except ImportError:
            text = frame.to_csv(index=False, header=not number, quoting=2 if quoted else 0)
            file.write(text.encode())
            continue
        if not number:
            file.write((",".join(f'"{name}"' if quoted else name for name in frame.columns) + "\n").encode())
        how = csv.WriteOptions(include_header=False, quoting_style="needed" if quoted else "none")
        csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), file, how)


def save_csv(path: Path, frames: Iterable[pd.DataFrame], *, quoted: bool = False) -> None:
    """Write the pieces of one table to a CSV file; see `write_csv`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_csv(file, frames, quoted=quoted)


def save_zip(path: Path, write: Callable[[IO[bytes]], None], member: str = "") -> None:
    """Write an archive with one member, named by default like the archive without `.zip`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open(member or path.name.removesuffix(".zip"), "w", force_zip64=True) as file,
    ):
        write(file)


def _icecube(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows, size = scaled(table.raw, share), 200_000
    (folder / "train").mkdir()
    writer = None
    for first, count in pieces(rows, size):
        batch = first // size + 1
        ends = np.cumsum(rng.integers(50, 250, count))
        events = pd.DataFrame(
            {
                "batch_id": batch,
                "event_id": np.arange(first, first + count) * 16 + 24,
                "first_pulse_index": ends - 50,
                "last_pulse_index": ends,
                "azimuth": rng.uniform(0, 2 * np.pi, count),
                "zenith": np.arccos(rng.uniform(-1, 1, count)),
            }
        )
        arrow_table = pa.Table.from_pandas(events, preserve_index=False)
        writer = writer or parquet.ParquetWriter(folder / "train_meta.parquet", arrow_table.schema)
        writer.write_table(arrow_table)
        pulses = pd.DataFrame({"time": [5], "sensor_id": [1], "charge": [0.5], "auxiliary": [False]}, index=[24])
        pulses.rename_axis("event_id").to_parquet(folder / "train" / f"batch_{batch}.parquet")
    if writer:
        writer.close()
    save_csv(folder / "sensor_geometry.csv", [pd.DataFrame({"sensor_id": [0], "x": [0.0], "y": [0.0], "z": [0.0]})])


def _taxi(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    frames = (rides(rng, count, first) for first, count in pieces(scaled(table.raw, share)))
    save_csv(folder / "train.csv", frames)
    (folder / "GCP-Coupons-Instructions.rtf").write_text("{\\rtf1}")


def _fashion(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    rows = scaled(table.raw, share)
    customers = np.array(hexadecimal(rng, scaled(CUSTOMERS, share), 64), dtype=object)
    numbers, days = articles(10), pd.date_range("2018-09-20", "2020-09-22").strftime("%Y-%m-%d").to_numpy(dtype=object)
    prices = np.array([f"{price:.17f}" for price in rng.random(5_000) / 10], dtype=object)

    def log() -> Iterator[pd.DataFrame]:
        for first, count in pieces(rows):
            yield pd.DataFrame(
                {
                    "t_dat": days[np.arange(first, first + count) * len(days) // rows],
                    "customer_id": customers[rng.integers(0, len(customers), count)],
                    "article_id": frequent(rng, numbers, (count,), 2.0),
                    "price": prices[rng.integers(0, len(prices), count)],
                    "sales_channel_id": rng.integers(1, 3, count),
                }
            )

    save_csv(folder / "transactions_train.csv", log())
    usual = " ".join(numbers[:12])
    save_csv(folder / "sample_submission.csv", [pd.DataFrame({"customer_id": customers, "prediction": usual})])
    save_csv(folder / "articles.csv", [pd.DataFrame({"article_id": numbers, "prod_name": "Strap top"})])
    save_csv(folder / "customers.csv", [pd.DataFrame({"customer_id": customers, "age": 30})])
    for number in numbers[: scaled(len(numbers), share)]:
        picture = folder / "images" / number[:3] / f"{number}.jpg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(b"picture")


def _billion(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    pool = sentences(rng, 100_000, 25, vocabulary(rng, 60_000))

    def write(file: IO[bytes]) -> None:
        for _, count in pieces(scaled(table.raw, share)):
            file.write(("\n".join(pool[rng.integers(0, len(pool), count)]) + "\n").encode())

    save_zip(folder / "train_v2.txt.zip", write)


def _spoken(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    russian = "russian" in table.task
    begins = "ru" if russian else "en"
    lines = tokens(rng, scaled(table.raw, share), russian)
    save_zip(
        folder / f"{begins}_train.csv.zip",
        lambda file: write_csv(file, (lines[at : at + PIECE] for at in range(0, len(lines), PIECE)), quoted=True),
    )
    for name in ("test_2", "sample_submission_2"):
        save_zip(folder / f"{begins}_{name}.csv.zip", lambda file: write_csv(file, [lines[:1]], quoted=True))


def _ventilator(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    rows = scaled(table.raw, share) // 80 * 80
    save_csv(folder / "train.csv", (breaths(rng, count, first) for first, count in pieces(rows, PIECE // 80 * 80)))


def _facebook(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    frames = (questions(rng, count, first) for first, count in pieces(scaled(table.raw, share), 250_000))
    save_zip(folder / "Train.zip", lambda file: write_csv(file, frames, quoted=True), "Train.csv")


def _denoising(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    from PIL import Image

    for name in ("train", "train_cleaned"):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as packed:
            for number in range(max(5, round(144 * share))):
                page = rng.integers(0, 256, (258 if number % 3 == 0 else 420, 540), dtype=np.uint8)
                drawn = io.BytesIO()
                Image.fromarray(page).save(drawn, "png", compress_level=1)
                packed.writestr(f"{name}/{number + 1}.png", drawn.getvalue())


def _football(rng: np.random.Generator, table: Table, share: float, folder: Path) -> None:
    rows, per_play = scaled(table.raw, share), 78 * 253
    labels = [contacts(rng, count, first // per_play) for first, count in pieces(rows, 50 * per_play)]
    save_csv(folder / "train_labels.csv", labels)
    plays = pd.unique(pd.concat([frame["game_play"] for frame in labels]))
    tracked = np.repeat(plays, 22 * 250)
    place = rng.random((len(tracked), 2))
    tracks = pd.DataFrame(
        {
            "game_play": tracked,
            "nfl_player_id": np.arange(len(tracked)) % 22 * 731 + 30_000,
            "step": np.arange(len(tracked)) // 22 % 250,
            "x_position": np.round(place[:, 0] * 120, 2),
            "y_position": np.round(place[:, 1] * 53, 2),
        }
    )
    save_csv(folder / "train_player_tracking.csv", [tracks])
    boxes = pd.DataFrame({"game_play": np.repeat(plays, 17_000)})
    for name in ("frame", "left", "width", "top", "height"):
        boxes[name] = rng.integers(0, 1_280, len(boxes))
    save_csv(folder / "train_baseline_helmets.csv", [boxes])
    save_csv(folder / "train_video_metadata.csv", [pd.DataFrame({"game_play": plays, "view": "Endzone"})])
    for play in plays:
        for view in ("All29", "Endzone", "Sideline"):
            video = folder / "train" / f"{play}_{view}.mp4"
            video.parent.mkdir(exist_ok=True)
            video.write_bytes(b"video")


_WRITERS: dict[str, Callable[[np.random.Generator, Table, float, Path], None]] = {
    "icecube-neutrinos-in-deep-ice": _icecube,
    "new-york-city-taxi-fare-prediction": _taxi,
    "h-and-m-personalized-fashion-recommendations": _fashion,
    "billion-word-imputation": _billion,
    "text-normalization-challenge-russian-language": _spoken,
    "text-normalization-challenge-english-language": _spoken,
    "ventilator-pressure-prediction": _ventilator,
    "facebook-recruiting-iii-keyword-extraction": _facebook,
    "denoising-dirty-documents": _denoising,
    "nfl-player-contact-detection": _football,
}


def write_raw(table: Table, folder: Path, share: float = 1.0) -> None:
    """Write the raw files of a competition for `mleredux prepare ID --from FOLDER`.

    Args:
        folder: An empty folder.
        share: Share of the real rows, above 0 and at most 1.
    """
    _WRITERS[table.task](np.random.default_rng(0), table, share, folder)
