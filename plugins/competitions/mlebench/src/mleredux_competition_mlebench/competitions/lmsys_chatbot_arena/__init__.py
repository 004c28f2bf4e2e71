"""LMSYS Chatbot Arena: human preference between the answers of two models."""

from ...blocks import Metric, TableSplit, competition, corrected

OUTCOMES = ("winner_model_a", "winner_model_b", "winner_tie")

COMPETITION = competition(
    "lmsys-chatbot-arena",
    prepare=TableSplit(
        ids="id",
        targets=OUTCOMES,
        fill=dict.fromkeys(OUTCOMES, 1 / 3),
        test_columns=("id", "prompt", "response_a", "response_b"),
        answers="answers.csv",
    ),
    metric=Metric(grader="log-loss", options={"row_sum": {"decimals": 6}}),
    fixed=corrected(
        group="prompt",
    ),
)
