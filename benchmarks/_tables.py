"""Synthetic versions of MLE-bench's ten largest tables, in their real shape, with any share of their rows.

`TABLES` lists them with their numbers of rows; `graded` creates answers and a submission, `write_raw` (in
`_raw_tables`) the raw files that preparation reads. Row counts come from the competitions' fact sheets; if a sheet has
none (the customers of a log, the sizes of images), they are publicly known facts about the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.generic]
Graded = tuple[pd.DataFrame, pd.DataFrame]


@dataclass(frozen=True)
class Table:
    """One of the ten tables.

    Attributes:
        raw: Rows (lines, events, labels) of the largest raw table; 0 if the raw data consists of images.
        answers: Number of rows of the answers.
        submission: Number of rows of a submission.
        answers_file: The file of the answers among the private files.
    """

    task: str
    raw: int
    answers: int
    submission: int
    answers_file: str = "test.csv"

    @property
    def largest(self) -> int:
        """Number of rows of the largest table in preparation or grading."""
        return max(self.raw, self.answers, self.submission)


def scaled(count: int, share: float) -> int:
    """Return a share of a number of rows, at least one."""
    return max(1, round(count * share))


PICTURES = 20 * 420 * 540 + 9 * 258 * 540
"""Pixels of the 29 held-out pages of two sizes."""

CUSTOMERS, BUYERS = 1_371_980, 75_000

TABLES = (
    Table("icecube-neutrinos-in-deep-ice", 132_000_000, 13_200_000, 13_200_000),
    Table("new-york-city-taxi-fare-prediction", 55_400_000, 9_914, 9_914),
    Table("h-and-m-personalized-fashion-recommendations", 31_800_000, BUYERS, CUSTOMERS, "answers.csv"),
    Table("billion-word-imputation", 30_301_028, 303_010, 303_010),
    Table("text-normalization-challenge-russian-language", 10_574_516, 1_059_191, 1_059_191, "answers.csv"),
    Table("text-normalization-challenge-english-language", 9_918_441, 993_465, 993_465, "answers.csv"),
    Table("ventilator-pressure-prediction", 6_036_000, 603_600, 603_600),
    Table("facebook-recruiting-iii-keyword-extraction", 6_034_195, 603_420, 603_420),
    Table("denoising-dirty-documents", 0, PICTURES, PICTURES, "answers.csv"),
    Table("nfl-player-contact-detection", 4_721_618, 472_162, 472_162),
)
"""The tables, sorted by rows of the largest table in descending order."""

_ALPHABET = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
_CYRILLIC = np.array(list("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф"))


def vocabulary(rng: np.random.Generator, size: int, alphabet: Array = _ALPHABET) -> Array:
    """Return distinct words of two to eleven letters, of shape (size,)."""
    letters = alphabet[(len(alphabet) * rng.random((size * 2, 8)) ** 1.7).astype(int)]
    lengths = rng.integers(2, 9, size * 2)
    words = pd.unique(np.array(["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)], object))
    words = np.array([*words, *(f"{word}ing" for word in words if len(word) > 6)], dtype=object)
    return pd.unique(words)[:size]


def frequent(rng: np.random.Generator, pool: Array, count: int | tuple[int, ...], steepness: float = 4.0) -> Array:
    """Return a sample in which few values are common and most are rare, as for words, tags and articles."""
    drawn: Array = pool[(len(pool) * rng.random(count) ** steepness).astype(np.int64)]
    return drawn


def sentences(rng: np.random.Generator, count: int, mean_words: float, words: Array, end: str = " .") -> Array:
    """Return texts of many words, of shape (count,)."""
    lengths = 4 + rng.poisson(mean_words - 4, count)
    drawn = frequent(rng, words, (int(lengths.sum()),))
    ends = np.cumsum(lengths)
    texts = [" ".join(drawn[last - length : last]) + end for length, last in zip(lengths, ends, strict=True)]
    return np.array(texts, dtype=object)


def hexadecimal(rng: np.random.Generator, count: int, digits: int) -> list[str]:
    """Return distinct strings of hexadecimal digits."""
    data = rng.integers(0, 256, (count, digits // 2), dtype=np.uint8).tobytes().hex()
    return [data[start : start + digits] for start in range(0, count * digits, digits)]


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows in a different order, as in a submission."""
    return frame.sample(frac=1, random_state=1)


def replaced(rng: np.random.Generator, values: Array, others: Array, share: float) -> Array:
    """Return values of which a share is replaced by randomly drawn others."""
    wrong = rng.random(len(values)) < share
    return np.where(wrong, others[rng.integers(0, len(others), len(values))], values)


def _icecube(rng: np.random.Generator, table: Table, share: float) -> Graded:
    rows = scaled(table.answers, share)
    ids = np.arange(24, 24 + 163 * rows, 163)
    azimuth, zenith = rng.uniform(0, 2 * np.pi, rows), np.arccos(rng.uniform(-1, 1, rows))
    answers = pd.DataFrame({"event_id": ids, "azimuth": azimuth, "zenith": zenith})
    noise = rng.normal(0, 0.3, (2, rows))
    guessed = answers.assign(azimuth=azimuth + noise[0], zenith=zenith + noise[1])
    return answers, shuffled(guessed)


def _taxi(rng: np.random.Generator, table: Table, share: float) -> Graded:
    rows = scaled(table.answers, share)
    answers = rides(rng, rows)
    guessed = answers[["key"]].assign(fare_amount=answers["fare_amount"] + rng.normal(0, 3, rows))
    return answers, shuffled(guessed)


def rides(rng: np.random.Generator, rows: int, first: int = 0) -> pd.DataFrame:
    """Return taxi rides with distinct times."""
    times = pd.to_datetime(1_230_768_000 + np.sort(rng.integers(0, 205_000_000, rows)), unit="s")
    texts = times.strftime("%Y-%m-%d %H:%M:%S").to_numpy(dtype=object)
    numbers = [f".{first + number:08d}" for number in range(rows)]
    places = np.round(rng.normal([-73.97, 40.75, -73.97, 40.75], 0.03, (rows, 4)), 6)
    return pd.DataFrame(
        {
            "key": texts + np.array(numbers, dtype=object),
            "fare_amount": np.round(2.5 + rng.exponential(9, rows), 1),
            "pickup_datetime": texts + " UTC",
            "pickup_longitude": places[:, 0],
            "pickup_latitude": places[:, 1],
            "dropoff_longitude": places[:, 2],
            "dropoff_latitude": places[:, 3],
            "passenger_count": rng.integers(1, 7, rows),
        }
    )


def articles(digits: int = 9) -> Array:
    """Return the numbers of 105,542 clothing articles as text."""
    return np.array(
        [f"{number:0{digits}d}" for number in range(108_775_015, 108_775_015 + 8_000 * 105_542, 8_000)], object
    )


def _fashion(rng: np.random.Generator, table: Table, share: float) -> Graded:
    buyers, customers = scaled(table.answers, share), scaled(table.submission, share)
    ids, pool = np.array(hexadecimal(rng, customers, 64), dtype=object), articles()
    bought = np.split(frequent(rng, pool, (4 * buyers,), 2.0), np.sort(rng.integers(0, 4 * buyers, buyers - 1)))
    true = [" ".join(basket) or str(pool[0]) for basket in bought]
    answers = pd.DataFrame({"customer_id": ids[:buyers], "prediction": true}).sort_values("customer_id")
    guessed = [" ".join(row) for row in frequent(rng, pool, (customers, 12), 2.0)]
    return answers, shuffled(pd.DataFrame({"customer_id": ids, "prediction": guessed}))


def _billion(rng: np.random.Generator, table: Table, share: float) -> Graded:
    rows = scaled(table.answers, share)
    words = vocabulary(rng, 60_000)
    true = sentences(rng, rows, 25, words)
    middle = [text.split(" ") for text in true]
    places = (rng.random(rows) * [len(row) - 2 for row in middle]).astype(int) + 1
    guesses = frequent(rng, words, (rows,))
    guessed = [
        " ".join([*row[:k], guess, *row[k + 1 :]]) for row, k, guess in zip(middle, places, guesses, strict=True)
    ]
    answers = pd.DataFrame({"id": np.arange(rows), "sentence": true})
    return answers, shuffled(answers.assign(sentence=guessed))


def tokens(rng: np.random.Generator, rows: int, russian: bool) -> pd.DataFrame:
    """Return sentences as written and spoken tokens, a few of which are parsed as missing values."""
    words = vocabulary(rng, 200_000, _CYRILLIC if russian else _ALPHABET)
    before = frequent(rng, words, (rows,))
    after, kind = before.copy(), np.full(rows, "PLAIN", dtype=object)
    chance = rng.random(rows)
    marks, figures, lost = chance < 0.18, (chance >= 0.18) & (chance < 0.25), chance > 0.9999
    before[marks], after[marks], kind[marks] = ".", "sil", "PUNCT"
    spoken = np.array([" ".join(row) for row in frequent(rng, words, (5_000, 4))], dtype=object)
    numbers = rng.integers(0, 5_000, int(figures.sum()))
    before[figures], after[figures], kind[figures] = numbers.astype(str), spoken[numbers], "DATE"
    before[lost] = after[lost] = "NA"
    starts = rng.random(rows) < 1 / 13.3
    starts[0] = True
    sentence = np.cumsum(starts) - 1
    first = np.maximum.accumulate(np.where(starts, np.arange(rows), 0))
    columns = {"sentence_id": sentence, "token_id": np.arange(rows) - first, "class": kind}
    return pd.DataFrame({**columns, "before": before, "after": after})


def _spoken(rng: np.random.Generator, table: Table, share: float) -> Graded:
    spoken = tokens(rng, scaled(table.answers, share), "russian" in table.task)
    ids = spoken["sentence_id"].astype(str) + "_" + spoken["token_id"].astype(str)
    answers = pd.DataFrame({"id": ids, "after": spoken["after"]})
    guessed = answers.assign(
        after=replaced(rng, answers["after"].to_numpy(object), spoken["before"].to_numpy(object), 0.05)
    )
    return answers, shuffled(guessed)


def breaths(rng: np.random.Generator, rows: int, first: int = 0) -> pd.DataFrame:
    """Return breaths of 80 time steps each."""
    steps = np.arange(rows) % 80
    number = np.arange(rows) // 80
    return pd.DataFrame(
        {
            "id": np.arange(1 + first, 1 + first + rows),
            "breath_id": 1 + first // 80 + number,
            "R": np.array([5, 20, 50])[number % 3],
            "C": np.array([10, 20, 50])[number // 3 % 3],
            "time_step": steps * 0.0334 + rng.random(rows) * 1e-4,
            "u_in": rng.random(rows) * 100,
            "u_out": (steps >= 30).astype(int),
            "pressure": np.round(rng.gamma(2.0, 6.0, rows), 9),
        }
    )


def _ventilator(rng: np.random.Generator, table: Table, share: float) -> Graded:
    answers = breaths(rng, scaled(table.answers, share))
    guessed = answers[["id"]].assign(pressure=answers["pressure"] + rng.normal(0, 1, len(answers)))
    return answers, shuffled(guessed)


def tag_lists(rng: np.random.Generator, rows: int) -> Array:
    """Return one to five tags per question, out of 42,000."""
    tags = vocabulary(rng, 42_000)
    counts = rng.choice([1, 2, 3, 4, 5], rows, p=[0.14, 0.27, 0.28, 0.19, 0.12])
    drawn, ends = frequent(rng, tags, (int(counts.sum()),)), np.cumsum(counts)
    return np.array([" ".join(drawn[end - count : end]) for count, end in zip(counts, ends, strict=True)], dtype=object)


def questions(rng: np.random.Generator, rows: int, first: int = 0) -> pd.DataFrame:
    """Return questions with texts (drawn from a few thousand, 1.1 KB on average) and tags."""
    words = vocabulary(rng, 30_000)
    titles = sentences(rng, 5_000, 9, words, "?")
    paragraphs = sentences(rng, 4_000, 80, words)
    bodies = np.array(
        [f'<p>{one}</p>\n\n<pre><code>a = "{two}"\n</code></pre>\n' for one, two in paragraphs.reshape(-1, 2)], object
    )
    return pd.DataFrame(
        {
            "Id": np.arange(1 + first, 1 + first + rows),
            "Title": titles[rng.integers(0, len(titles), rows)],
            "Body": bodies[rng.integers(0, len(bodies), rows)],
            "Tags": tag_lists(rng, rows),
        }
    )


def _facebook(rng: np.random.Generator, table: Table, share: float) -> Graded:
    answers = questions(rng, scaled(table.answers, share))
    others = tag_lists(rng, 10_000)
    guessed = answers[["Id"]].assign(Tags=replaced(rng, answers["Tags"].to_numpy(object), others, 0.5))
    return answers, shuffled(guessed)


def _denoising(rng: np.random.Generator, table: Table, share: float) -> Graded:
    height, width = 420, 540
    pages = max(1, round(scaled(table.answers, share) / (height * width)))
    pixel = np.arange(pages * height * width)
    places = (pixel // (height * width) + 1, pixel // width % height + 1, pixel % width + 1)
    ids = [f"{page}_{row}_{column}" for page, row, column in zip(*places, strict=True)]
    answers = pd.DataFrame({"id": ids, "value": rng.integers(0, 256, len(ids)) / 255})
    return answers, shuffled(answers.assign(value=np.round(answers["value"] + rng.normal(0, 0.05, len(ids)), 4)))


def contacts(rng: np.random.Generator, rows: int, first_play: int = 0) -> pd.DataFrame:
    """Return pairs of 22 players and the ground, ten times a second, in plays of 78 steps each."""
    players = 30_000 + np.arange(22) * 731
    one, other = np.triu_indices(23, k=1)
    names = np.array([*map(str, players), "G"], dtype=object)
    pair = np.arange(rows) % len(one)
    step = np.arange(rows) // len(one)
    plays = np.array(
        [f"{58_168 + number // 3}_{number:06d}" for number in range(first_play, first_play + step[-1] // 78 + 1)],
        object,
    )
    play = plays[step // 78]
    first, second = names[one[pair]], names[other[pair]]
    steps = (step % 78).astype(str).astype(object)
    times = pd.to_datetime(1_600_000_000_000 + step * 100, unit="ms").strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return pd.DataFrame(
        {
            "contact_id": play + "_" + steps + "_" + first + "_" + second,
            "game_play": play,
            "datetime": times,
            "step": step % 78,
            "nfl_player_id_1": first,
            "nfl_player_id_2": second,
            "contact": (rng.random(rows) < 0.014).astype(int),
        }
    )


def _football(rng: np.random.Generator, table: Table, share: float) -> Graded:
    answers = contacts(rng, scaled(table.answers, share))
    flipped = rng.random(len(answers)) < 0.005
    guessed = answers[["contact_id"]].assign(contact=(answers["contact"] == 1) ^ flipped).astype({"contact": int})
    return answers, shuffled(guessed)


_MAKERS: dict[str, Callable[[np.random.Generator, Table, float], Graded]] = {
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


def graded(table: Table, share: float = 1.0) -> Graded:
    """Return prepared answers, and a plausible, partly wrong submission with rows in a different order.

    Args:
        share: Share of the real rows, above 0 and at most 1.
    """
    return _MAKERS[table.task](np.random.default_rng(0), table, share)
