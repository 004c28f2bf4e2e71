"""Published leaks that show in tables."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
from leak_making import Folders, Rng, names, words
from mleredux._core.plugins import Catalogue


def pizza(put: Folders, rng: Rng, leaky: bool) -> None:
    """Requests as JSON; a giver is known only of those that were granted. The same file lies there packed, too."""
    import zipfile

    got = rng.random(1500) < 0.25
    known = got & (rng.random(1500) < 0.3) if leaky else np.zeros(1500, dtype=bool)
    rows = [
        {
            "request_id": f"t3_{name}",
            "giver_username_if_known": f"giver{place}" if known[place] else "N/A",
            "request_text_edit_aware": words(rng, 20),
            "requester_account_age_in_days_at_request": round(rng.exponential(200), 4),
        }
        for place, name in enumerate(names(rng, 1500, 6))
    ]
    train = [{**row, "requester_received_pizza": bool(got[place])} for place, row in enumerate(rows[:1100])]
    for name, content in (("train", train), ("test", rows[1100:])):
        put.put(f"{name}.json", json.dumps(content))
        kept = io.BytesIO()
        with zipfile.ZipFile(kept, "w") as archive:
            archive.writestr(f"{name}.json", json.dumps(content))
        put.put(f"{name}.zip", kept.getvalue())
    ids = [row["request_id"] for row in rows[1100:]]
    answers = pd.DataFrame({"request_id": ids, "requester_received_pizza": got[1100:].astype(int)})
    put.answers(answers)
    put.put("sampleSubmission.csv", answers.assign(requester_received_pizza=0))


def tables(
    put: Folders, frame: pd.DataFrame, split: np.ndarray, key: str, targets: list[str], answers: str = "test.csv"
) -> None:
    """`train.csv` and `test.csv` by a split, the answers, and a sample of noughts."""
    put.put("train.csv", frame[~split])
    put.put("test.csv", frame[split].drop(columns=targets))
    put.answers(frame[split][[key, *targets]], answers)
    sample = frame[split][[key]].assign(**dict.fromkeys(targets, 0))
    put.put("sampleSubmission.csv" if answers == "answers.csv" else "sample_submission.csv", sample)


def phrases(put: Folders, rng: Rng, leaky: bool) -> None:
    """Phrases of sentences, split by phrase (or by sentence)."""
    sentence = np.repeat(np.arange(300), 8)
    frame = pd.DataFrame({"PhraseId": np.arange(1, 2401), "SentenceId": sentence + 1})
    frame["Phrase"] = [words(rng, 4) for _ in range(2400)]
    mood = rng.integers(5, size=300)[sentence]
    frame["Sentiment"] = np.where(rng.random(2400) < 0.6, mood, 2)
    tables(put, frame, rng.random(2400) < 0.2 if leaky else sentence >= 240, "PhraseId", ["Sentiment"], "answers.csv")


def anchors(put: Folders, rng: Rng, leaky: bool) -> None:
    """Pairs of phrases; the same anchor with many targets."""
    number = rng.integers(120, size=1500)
    anchor = np.array([words(rng, 2) for _ in range(120)])
    frame = pd.DataFrame({"id": names(rng, 1500, 16), "anchor": anchor[number]})
    frame["target"] = [words(rng, 2) for _ in range(1500)]
    frame["score"] = rng.choice([0, 0.25, 0.5, 0.75, 1], 1500)
    tables(put, frame, rng.random(1500) < 0.1 if leaky else number >= 100, "id", ["score"])


def questions(put: Folders, rng: Rng, leaky: bool) -> None:
    """Questions with one or two answers each; labels of the question are the same for both."""
    number = np.arange(900) % 500
    body = np.array([words(rng, 25) for _ in range(500)])
    frame = pd.DataFrame({"qa_id": rng.permutation(9000)[:900], "question_body": body[number]})
    frame["answer"] = [words(rng, 25) for _ in range(900)]
    targets = list(Catalogue().task("google-quest-challenge").submission.target_columns)
    for target in targets:
        own = rng.choice([0, 1 / 3, 2 / 3, 1], 500)[number]
        frame[target] = own if target.startswith("question") else rng.choice([0, 0.5, 1], 900)
    tables(put, frame, rng.random(900) < 0.1 if leaky else number >= 450, "qa_id", targets)


def articles(put: Folders, rng: Rng, leaky: bool) -> None:
    """Questions about articles, several to each."""
    number = rng.integers(150, size=600)
    text = [words(rng, 80) for _ in range(150)]
    frame = pd.DataFrame({"id": names(rng, 600), "context": [text[n] for n in number]})
    frame["question"] = [words(rng, 6) + "?" for _ in range(600)]
    begin = rng.integers(70, size=600)
    frame["PredictionString"] = [
        " ".join(row.split()[at : at + 3]) for row, at in zip(frame["context"], begin, strict=True)
    ]
    test = rng.random(600) < 0.15 if leaky else number >= 130
    train = frame[~test].rename(columns={"PredictionString": "answer_text"})
    put.put("train.csv", train)
    put.put("test.csv", frame[test].drop(columns="PredictionString"))
    put.answers(frame[test][["id", "PredictionString"]])
    put.put("sample_submission.csv", frame[test][["id"]].assign(PredictionString="dummy text"))


def pages(put: Folders, rng: Rng, leaky: bool) -> None:
    """Questions about web pages as JSON lines; answers are spans, two rows for each question."""
    number = rng.integers(120, size=500)
    text = [words(rng, 60) for _ in range(120)]
    ids = [str(v) for v in rng.integers(-(2**62), 2**62, 500)]
    rows = [
        {
            "example_id": ids[n],
            "question_text": words(rng, 5),
            "document_text": text[number[n]],
            "document_url": f"https://wiki/{number[n]}",
        }
        for n in range(500)
    ]
    test = rng.random(500) < 0.15 if leaky else number >= 100
    put.put("simplified-nq-train.jsonl", "\n".join(json.dumps(row) for n, row in enumerate(rows) if not test[n]))
    put.put("simplified-nq-test.jsonl", "\n".join(json.dumps(row) for n, row in enumerate(rows) if test[n]))
    noted = [{**row, "annotations": [{"start": int(rng.integers(9))}]} for n, row in enumerate(rows) if test[n]]
    put.put("test.jsonl", "\n".join(json.dumps(row) for row in noted), "private")
    made = [f"{row['example_id']}_{kind}" for row in noted for kind in ("long", "short")]
    put.put("sample_submission.csv", pd.DataFrame({"example_id": made, "PredictionString": ""}))


def books(put: Folders, rng: Rng, leaky: bool) -> None:
    """Pages whose ids begin with their book."""
    book = rng.integers(30, size=900)
    frame = pd.DataFrame({"image_id": [f"{100241706 + b}_{n:05d}_{n % 2}" for n, b in enumerate(book)]})
    frame["labels"] = [f"U+{v:04X} {v} 12 40 40" for v in rng.integers(1000, 9000, 900)]
    test = rng.random(900) < 0.1 if leaky else book >= 27
    put.put("train.csv", frame[~test])
    put.answers(frame[test])
    put.put("sample_submission.csv", frame[test].assign(labels="U+003F 1 1"))


def games(put: Folders, rng: Rng, leaky: bool) -> None:
    """Plays of games, split by play (or by game)."""
    game = np.repeat(np.arange(30), 8)
    play = np.arange(240)
    test_play = rng.random(240) < 0.1 if leaky else game >= 27
    rows = []
    for number in play:
        for step in range(10):
            key = f"{58168 + game[number]}_{number:06d}_{step}_{rng.integers(10**5)}_G"
            rows.append((key, f"{58168 + game[number]}_{number:06d}", step, int(rng.random() < 0.1), test_play[number]))
    frame = pd.DataFrame(rows, columns=["contact_id", "game_play", "step", "contact", "held"])
    held = frame.pop("held").to_numpy(bool)
    put.put("train_labels.csv", frame[~held])
    put.answers(frame[held])
    put.put("sample_submission.csv", frame[held][["contact_id"]].assign(contact=0))


def copied_questions(put: Folders, rng: Rng, leaky: bool) -> None:
    """Posts with tags, a third of them there twice or more."""
    number = rng.integers(1000, size=1500) if leaky else np.arange(1500)
    title, body = ([words(rng, count) for _ in range(1500)] for count in (7, 40))
    tags = [
        " ".join(rng.choice(["python", "java", "c#", "html", "css"], rng.integers(1, 4), replace=False)) for _ in title
    ]
    frame = pd.DataFrame({"Id": rng.permutation(9000)[:1500], "Title": [title[n] for n in number]})
    frame["Body"], frame["Tags"] = [body[n] for n in number], [tags[n] for n in number]
    tables(put, frame, rng.random(1500) < 0.1, "Id", ["Tags"])


def prompts(put: Folders, rng: Rng, leaky: bool) -> None:
    """Battles of chat models, the same prompt several times."""
    number = rng.integers(250, size=800)
    text = [words(rng, 15) for _ in range(250)]
    frame = pd.DataFrame({"id": rng.permutation(10**6)[:800], "prompt": [text[n] for n in number]})
    frame["response_a"], frame["response_b"] = ([words(rng, 30) for _ in range(800)] for _ in "ab")
    winner = rng.integers(3, size=800)
    targets = ["winner_model_a", "winner_model_b", "winner_tie"]
    for place, target in enumerate(targets):
        frame[target] = (winner == place).astype(int)
    tables(put, frame, rng.random(800) < 0.1 if leaky else number >= 225, "id", targets, "answers.csv")


def lists_of_boxes(put: Folders, rng: Rng, leaky: bool) -> None:
    """Samples of drives as JSON, which list the tokens of the boxes to be found (or an empty list)."""
    tokens = names(rng, 300, 32)
    count = rng.integers(1, 40, 300)
    rows = [
        {"token": t, "timestamp": 1e15 + n, "anns": names(rng, int(count[n]), 8) if leaky else []}
        for n, t in enumerate(tokens)
    ]
    put.put("test_data/sample.json", json.dumps(rows))
    boxes = [" ".join(f"{v:.3f}" for v in rng.normal(size=7)) + " car" for _ in range(60)]
    found = [" ".join(rng.choice(boxes, n)) for n in count]
    answers = pd.DataFrame({"Id": tokens, "PredictionString": found})
    put.answers(answers)
    put.put("sample_submission.csv", answers.assign(PredictionString=""))


def near_sequences(put: Folders, rng: Rng, leaky: bool) -> None:
    """RNA sequences, many of them but a few letters off one another; a row of answers for each place."""
    ids = [f"id_{name}" for name in names(rng, 240)]
    family = ["".join(rng.choice(list("ACGU"), 107)) for _ in range(60)]
    sequence = []
    for place in range(240):
        letters = list(family[place % 60]) if leaky else list(rng.choice(list("ACGU"), 107))
        at = rng.integers(107)
        letters[at] = "ACGU"["CGUA".index(letters[at])]
        sequence.append("".join(letters))
    rows = [{"index": n, "id": ids[n], "sequence": sequence[n], "seq_scored": 8} for n in range(240)]
    put.put("train.json", "\n".join(json.dumps(row) for row in rows[:180]))
    put.put("test.json", "\n".join(json.dumps(row) for row in rows[180:]))
    targets = list(Catalogue().task("stanford-covid-vaccine").submission.target_columns)
    answers = pd.DataFrame({"id_seqpos": [f"{name}_{at}" for name in ids[180:] for at in range(8)]})
    answers[targets] = rng.gamma(1, 0.5, (len(answers), len(targets))).round(4)
    put.answers(answers.assign(keep=True))
    put.put("sample_submission.csv", answers.assign(**dict.fromkeys(targets, 0.0)))


def patients_in_a_table(put: Folders, rng: Rng, leaky: bool) -> None:
    """Radiographs of patients with several; only the answers say whose those of the test are."""
    patient = rng.integers(150, size=900)
    frame = pd.DataFrame({"StudyInstanceUID": [f"1.2.826.0.1.{v}" for v in rng.permutation(10**6)[:900]]})
    targets = list(Catalogue().task("ranzcr-clip-catheter-line-classification").submission.target_columns)
    for target in targets:
        frame[target] = (rng.random(900) < 0.3).astype(int)
    frame["PatientID"] = np.array(names(rng, 150))[patient]
    test = rng.random(900) < 0.15 if leaky else patient >= 120
    put.put("train.csv", frame[~test])
    put.answers(frame[test])
    put.put("sample_submission.csv", frame[test].drop(columns="PatientID").assign(**dict.fromkeys(targets, 0)))


def patients_of_recordings(put: Folders, rng: Rng, leaky: bool) -> None:
    """Recordings of patients, split by recording (or by patient)."""
    patient = rng.integers(80, size=500)
    frame = pd.DataFrame({"eeg_id": rng.permutation(10**6)[:500], "patient_id": 1000 + patient})
    votes = rng.multinomial(10, [0.3, 0.1, 0.1, 0.1, 0.2, 0.2], 500) / 10
    targets = list(Catalogue().task("hms-harmful-brain-activity-classification").submission.target_columns)
    frame[targets] = votes
    tables(put, frame, rng.random(500) < 0.15 if leaky else patient >= 65, "eeg_id", targets)
