"""H&M Personalized Fashion Recommendations: purchases in the last days of a log."""

from functools import partial

from ...blocks import Metric, Workspace, competition, recipe

LOG = ("t_dat", "customer_id", "article_id", "price", "sales_channel_id")


@recipe("customer_id", "prediction", answers="answers.csv")
def prepare(w: Workspace, as_described: bool = False) -> None:
    """Cut the log by date.

    Args:
        as_described: Whether to hold out seven days, and to keep the ten digits of article ids. The published files
            hold out eight days, counting both ends, and lose the leading zero, which the lists in the sample keep.
    """
    import pandas as pd

    log = w.table("transactions_train.csv", LOG, dtype={"article_id": str} if as_described else None)
    dates = pd.to_datetime(log["t_dat"])
    is_test = dates > dates.max() - pd.Timedelta(days=7 if as_described else 8)
    bought = log.loc[is_test, "article_id"].astype(str).groupby(log.loc[is_test, "customer_id"])
    w.public("transactions_train.csv", log[~is_test])
    for name in ("sample_submission.csv", "articles.csv", "customers.csv"):
        w.public(name, w.file(name))
    w.public("images", w.tree("images").all())
    w.private("answers.csv", bought.agg(" ".join).rename("prediction").reset_index())


COMPETITION = competition(
    "h-and-m-personalized-fashion-recommendations",
    prepare=prepare,
    ids_fixed=False,
    extra_columns=False,
    types={"prediction": "string"},
    metric=Metric(
        grader="map-at-k", options={"k": 12, "missing": "nan", "numbers": "text", "match": "sorted-covering"}
    ),
    fixed=partial(prepare, as_described=True),
)
