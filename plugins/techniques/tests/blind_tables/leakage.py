"""Leaks of real data: what is known afterwards, means with the own row, marks, numbers, repeated people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from known_tables import Known, Rng
from known_tables.leakage import ROW_LEAK, document
from mleredux.models import KnownLeak

from blind_tables import at_random, houses, patients, with_columns

__all__ = ["KINDS", "document"]


def physicians_mean(rng: Rng) -> Known:
    """Mean readmission of a physician's (two or three) training patients, the own one included."""
    rows, _ = patients(rng, 1200)
    test, physician = at_random(rng, 1200), rng.integers(0, 330, 1200)
    means = rows["y"].where(~test).groupby(physician).mean()
    told = pd.Series(physician).map(means).fillna(rows["y"][~test].mean()).round(4)
    return Known(with_columns(rows, physician=physician, physician_rate=told), test, [["physician_rate"]], [])


def late_fees(rng: Rng) -> Known:
    """Fees are booked after default; current loans, as those of the test, have none."""
    rows, _ = patients(rng, 900, share=0.25)
    test = at_random(rng, 900)
    fees = np.where((rows["y"] == 1) & (rng.random(900) < 0.85), rng.gamma(2, 30, 900).round(2), 0.0)
    return Known(with_columns(rows, late_fees=np.where(test, 0.0, fees)), test, [["late_fees"]], [])


def status_texts(rng: Rng) -> Known:
    """The last status of a closed case tells how it ended; those of the test are open."""
    rows, _ = patients(rng, 1000)
    test = at_random(rng, 1000)
    ended = np.where(
        rows["y"] == 1,
        rng.choice(["returned by ambulance", "returned after phone call", "seen at desk"], 1000),
        rng.choice(["closed, no answer", "closed by letter", "seen at desk"], 1000),
    )
    status = np.where(test, rng.choice(["open", "open, letter sent"], 1000), ended)
    return Known(with_columns(rows, status=status), test, [["status"]], [["age"]])


def case_numbers(rng: Rng) -> Known:
    """Numbers of cases were given class by class in the archive, and in order of arrival since."""
    rows, risk = patients(rng, 1200)
    test = at_random(rng, 1200, 0.25)
    rows["y"] = np.array(["none", "mild", "severe"], dtype=object)[np.digitize(risk, np.quantile(risk, [0.5, 0.85]))]
    order = np.argsort(rows["y"].map({"none": 1, "mild": 0, "severe": 2}).to_numpy() + rng.random(1200) * 1.2)
    number = np.empty(1200, dtype=int)
    number[order] = np.arange(1200) * 3
    rows["id"] = np.where(test, rng.permutation(1200) * 3 + 1, number)
    return Known(rows, test, [["id"]], [], "log-loss")


def odd_digests(rng: Rng) -> Known:
    """The last character of a digest is even for one class, in the files of the training rows."""
    rows, _ = patients(rng, 1500)
    test = at_random(rng, 1500)
    head = ["".join(rng.choice(list("0123456789abcdef"), 7)) for _ in range(1500)]
    odd = np.where(test | (rng.random(1500) < 0.1), rng.integers(0, 2, 1500), rows["y"])
    digest = [text + "02468ace13579bdf"[8 * bit + rng.integers(0, 8)] for text, bit in zip(head, odd, strict=True)]
    return Known(with_columns(rows, digest=digest), test, [["digest"]], [])


def the_same_people(rng: Rng) -> Known:
    """A third of the test are people of the training table, measured once more on the same day."""
    rows, _ = houses(rng, 900)
    rows["lat"], rows["lon"] = (rng.normal(48, 0.2, 900).round(5), rng.normal(11, 0.2, 900).round(5))
    test = np.arange(900) >= 600
    chosen = rng.permutation(600)[:100]
    for name in ("floor", "lat", "lon", "km"):
        near = rows[name].to_numpy()[chosen] * (1 + rng.normal(0, 1e-6, 100))
        rows.loc[rows.index[-100:], name] = near
    for name in ("rooms", "built", "heating", "y"):
        rows.loc[rows.index[-100:], name] = rows[name].to_numpy()[chosen]
    rows["id"] = rng.permutation(900)
    order = rng.permutation(900)
    return Known(rows.iloc[order].reset_index(drop=True), test[order], [ROW_LEAK], [], "rmse")


def price_per_square(rng: Rng) -> Known:
    """Tax is a share of the price that depends on the rate of the town; provisional in the test."""
    rows, price = houses(rng, 1200)
    test, rate = at_random(rng, 1200), rng.choice([0.02, 0.035, 0.05, 0.065], 1200)
    base = np.where(test, rng.permutation(price), price)
    rows = with_columns(rows, tax=(base * rate).round(3), tax_rate=rate)
    return Known(rows, test, [["tax", "tax_rate"]], [], "rmse")


def either_flag(rng: Rng) -> Known:
    """Of two flags, exactly one is set if the patient came back."""
    rows, _ = patients(rng, 1000)
    test, first = at_random(rng, 1000), rng.integers(0, 2, 1000)
    same = np.where(test | (rng.random(1000) < 0.05), rng.integers(0, 2, 1000), rows["y"])
    rows = with_columns(rows, consent=first, portal=first ^ same)
    return Known(rows, test, [["consent", "portal"]], [])


def cents(rng: Rng) -> Known:
    """Amounts of one class end with 99 or 49 cents: they were entered by another office."""
    rows, _ = patients(rng, 1400)
    test, whole = at_random(rng, 1400), rng.gamma(3, 40, 1400).astype(int)
    marked = np.where(test, rng.random(1400) < 0.35, (rows["y"] == 1) & (rng.random(1400) < 0.9))
    part = np.where(marked, rng.choice([49, 99], 1400), rng.integers(0, 100, 1400))
    return Known(with_columns(rows, invoice=(whole + part / 100).round(2)), test, [["invoice"]], [])


def only_when_asked(rng: Rng) -> Known:
    """A follow-up score exists (mostly) for who came back; in the test it lacks at random."""
    rows, _ = patients(rng, 900)
    test = at_random(rng, 900)
    there = np.where(test, rng.random(900) < 0.4, rng.random(900) < np.where(rows["y"] == 1, 0.95, 0.1))
    score = pd.Series(rng.normal(50, 10, 900).round(1)).where(there)
    return Known(with_columns(rows, follow_up=score), test, [["follow_up"]], [])


def honest_sensor(rng: Rng) -> Known:
    """A very good measurement, in the test as well."""
    rows, risk = patients(rng, 900)
    return Known(
        with_columns(rows, marker=(risk + rng.normal(0, 0.15, 900)).round(3)), at_random(rng, 900), [], [["marker"]]
    )


def honest_history(rng: Rng) -> Known:
    """A shop's mean of earlier years, of other rows than these."""
    rows, price = houses(rng, 1000)
    agent = rng.integers(0, 25, 1000)
    effect = rng.normal(0, 90, 25)
    rows["y"] = (price + effect[agent]).round(2)
    past = (260 + effect + rng.normal(0, 10, 25)).round(1)
    rows = with_columns(rows, agent=[f"agent {k}" for k in agent], agent_mean_before=past[agent])
    return Known(rows, at_random(rng, 1000), [], [["agent_mean_before"]], "rmse")


def declared_refunds(rng: Rng) -> Known:
    """Refunds follow the outcome and are in the test, too; the competition declares it."""
    rows, _ = patients(rng, 800)
    refund = np.where(rows["y"] == 1, rng.gamma(4, 20, 800), rng.gamma(4, 20, 800) * (rng.random(800) < 0.04)).round(2)
    leak = KnownLeak(columns=("refund",), explanation="Refunds are paid after readmission.")
    return Known(
        with_columns(rows, refund=refund),
        at_random(rng, 800),
        [["refund"]],
        [],
        fields={"known_leaks": (leak,)},
    )


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(physicians_mean, late_fees, status_texts, case_numbers, odd_digests, the_same_people, price_per_square),
        *(either_flag, cents, only_when_asked, honest_sensor, honest_history, declared_refunds),
    )
}
