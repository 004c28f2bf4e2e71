"""The tables, their sources and licences, and their splits."""

from __future__ import annotations

import json

import pandas as pd

from natural import Natural, random_rows, shipped, whole


def diamonds() -> pd.DataFrame:
    rows = pd.read_csv(shipped("plotnine", "data", "diamonds.csv"))
    return rows.sample(3_000, random_state=1).reset_index(drop=True)


def penguins() -> pd.DataFrame:
    rows = pd.read_csv(shipped("palmerpenguins", "data", "penguins-raw.csv"))
    rows["Species"] = rows["Species"].str.split().str[0]
    return rows


def housing() -> pd.DataFrame:
    rows = pd.read_csv(shipped("plotnine", "data", "txhousing.csv"))
    return rows[(rows["year"] >= 2008) & rows["median"].notna()].drop(columns=["volume"]).reset_index(drop=True)


def weather() -> pd.DataFrame:
    return pd.read_csv(shipped("vega_datasets", "_data", "seattle-weather.csv"))


def regimes() -> pd.DataFrame:
    rows = pd.read_csv(shipped("lifelines", "datasets", "dd.csv"))
    return rows.drop(columns=["regime", "leaderspellreg"])


def modes() -> pd.DataFrame:
    return pd.read_csv(shipped("statsmodels", "datasets", "modechoice", "modechoice.csv"), sep=None, engine="python")


def health() -> pd.DataFrame:
    rows = pd.read_csv(shipped("statsmodels", "datasets", "randhie", "src", "randhie.csv"))
    outcomes = [
        *("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "totadm", "inpmis", "mentvis", "notmdvis"),
        *("lnmeddol", "binexp", "linc", "lnum", "time"),
    ]
    people = pd.Series(rows["zper"].unique()).sample(700, random_state=1)
    return rows[rows["zper"].isin(people)].drop(columns=outcomes).reset_index(drop=True)


def affairs() -> pd.DataFrame:
    rows = pd.read_csv(shipped("statsmodels", "datasets", "fair", "fair.csv"))
    rows["unfaithful"] = (rows.pop("affairs") > 0).astype(int)
    return rows.sample(3_000, random_state=1).reset_index(drop=True)


def election() -> pd.DataFrame:
    rows = pd.read_csv(shipped("statsmodels", "datasets", "anes96", "anes96.csv"), sep=None, engine="python")
    return rows.rename(columns=lambda name: name.strip("'"))


def tumours() -> pd.DataFrame:
    rows = pd.read_csv(shipped("lifelines", "datasets", "gbsg2.csv"))
    return rows.drop(columns=["time", "cens"])


def counties() -> pd.DataFrame:
    return pd.read_csv(shipped("plotnine", "data", "midwest.csv")).drop(columns=["category"])


def cars() -> pd.DataFrame:
    rows = pd.DataFrame(json.loads(shipped("vega_datasets", "_data", "cars.json").read_text()))
    return rows[rows["Miles_per_Gallon"].notna()].reset_index(drop=True)


def senators() -> pd.DataFrame:
    rows = pd.read_csv(shipped("lifelines", "datasets", "canadian_senators.csv"))
    rows = rows[rows["reason"].isin(["Death", "Resignation", "Retirement"])].drop(
        columns=["Term (yyyy.mm.dd)", "observed"]
    )
    return rows.reset_index(drop=True)


def after(column: str, value: object) -> object:
    """A test of the rows from a value on."""
    return lambda table: table[column] >= value


TABLES = {
    table.id: table
    for table in (
        Natural(
            "diamonds",
            "plotnine (ggplot2's diamonds), 3,000 of 53,940 rows",
            "MIT",
            diamonds,
            random_rows,
            "price",
            "rmsle",
            minimize=True,
        ),
        Natural(
            "penguins",
            "palmerpenguins (Gorman, Williams and Fraser 2014, raw data)",
            "CC0-1.0",
            penguins,
            random_rows,
            "Species",
            "accuracy",
            sorted=True,
        ),
        Natural(
            "housing",
            "plotnine (ggplot2's txhousing, TAMU real estate center), from 2008",
            "MIT",
            housing,
            after("date", 2013.0),
            "median",
            "mae",
            minimize=True,
        ),
        Natural(
            "weather",
            "vega-datasets (seattle-weather, NOAA)",
            "BSD-3-Clause; data in the public domain",
            weather,
            after("date", "2015"),
            "weather",
            "balanced-accuracy",
        ),
        Natural(
            "regimes",
            "lifelines (Cheibub, Gandhi and Vreeland 2010)",
            "MIT",
            regimes,
            whole("ctryname"),
            "democracy",
            "accuracy",
        ),
        Natural(
            "modes",
            "statsmodels (Greene's travel mode choice)",
            "BSD-3-Clause; data in the public domain",
            modes,
            whole("individual"),
            "choice",
            "roc-auc",
        ),
        Natural(
            "health",
            "statsmodels (RAND health insurance experiment), 700 people",
            "BSD-3-Clause; data in the public domain",
            health,
            whole("zper"),
            "mdvis",
            "mae",
            minimize=True,
        ),
        Natural(
            "affairs",
            "statsmodels (Fair 1978), 3,000 of 6,366 rows",
            "BSD-3-Clause; data in the public domain",
            affairs,
            random_rows,
            "unfaithful",
            "roc-auc",
        ),
        Natural(
            "election",
            "statsmodels (American National Election Study 1996)",
            "BSD-3-Clause; data in the public domain",
            election,
            random_rows,
            "vote",
            "log-loss",
            minimize=True,
        ),
        Natural(
            "tumours",
            "lifelines (German Breast Cancer Study Group 2)",
            "MIT",
            tumours,
            random_rows,
            "estrec",
            "rmsle",
            minimize=True,
        ),
        Natural(
            "counties",
            "plotnine (ggplot2's midwest, US census)",
            "MIT",
            counties,
            random_rows,
            "inmetro",
            "f1",
        ),
        Natural(
            "cars",
            "vega-datasets (cars, StatLib 1983)",
            "BSD-3-Clause",
            cars,
            after("Year", "1979"),
            "Miles_per_Gallon",
            "rmse",
            minimize=True,
        ),
        Natural(
            "senators",
            "lifelines (Canadian senators)",
            "MIT",
            senators,
            random_rows,
            "reason",
            "accuracy",
        ),
    )
}
