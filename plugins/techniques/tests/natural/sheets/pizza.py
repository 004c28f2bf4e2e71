"""Kaggle's random-acts-of-pizza, split by MLE-bench at random; its files are not part of the repository."""

from natural.sheet import NO_SCRIPT, claim, how

PREFIX = "requester_"
FIRST = f"{PREFIX}days_since_first_post_on_raop_at_request"
IN_RAOP = f"{PREFIX}number_of_comments_in_raop_at_request"
COUNTS = (
    IN_RAOP,
    FIRST,
    *(f"{PREFIX}number_of_{name}_at_request" for name in ("comments", "posts", "posts_on_raop", "subreddits")),
    f"{PREFIX}upvotes_plus_downvotes_at_request",
)
SHEET = {
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["none"], "2,163 and 715 rows, ratio 3.03; for the area under the ROC curve nothing needs to be done."
    ),
    "missing": claim(
        {
            "giver_username_if_known": ("MAR", ["requester_received_pizza"], how("drop")),
            "request_text_edit_aware": ("MCAR", [], how("SimpleImputer", strategy="constant", fill_value="missing")),
        },
        "A giver is known of requests that were fulfilled: 0.48 out of fold by the target. Empty texts: 0.07 by "
        "the time is open.",
        undecided="naive absurd everything opposite",
    ),
    "encoding": claim(
        {
            "giver_username_if_known": ("nominal", how("drop")),
            "request_text_edit_aware": ("text", how("TfidfVectorizer")),
            "request_title": ("text", how("TfidfVectorizer")),
            "requester_subreddits_at_request": ("text", how("TfidfVectorizer")),
            "requester_username": ("identifier", how("drop")),
        },
        "Prose, lists of names, and names of people.",
    ),
    "eda": claim(
        {
            "types": {
                "request_text_edit_aware": "text",
                "request_title": "text",
                "requester_subreddits_at_request": "text",
            },
            "relations": {"giver_username_if_known": "values"},
        },
        "Numbers tell 0.02 to 0.12: open or nothing.",
        undecided="naive",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)},
        "A random split. Days since the first post is 0.0 in 2,404 of 2,878 rows: no group.",
        undecided="naive",
        nothing=True,
    ),
    "scaling": claim(dict.fromkeys(COUNTS, "log1p"), "Counts with skewness 2 to 34.", undecided="absurd everything"),
    "leakage": claim(
        [("future_value", ["giver_username_if_known"], "drop_columns")],
        "Who gave is known only after a request was fulfilled.",
    ),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {"tells": {"requester_username": "nothing"}, "drop": ["giver_username_if_known", "requester_username"]},
        "Mann-Whitney of days since the first post and comments in the community: p = 6e-12 and 1e-11.",
        undecided="naive everything",
    ),
    "shift": claim({}, "A random split.", undecided="naive", nothing=True),
}
