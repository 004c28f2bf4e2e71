"""Plots have fixed margins, in which all labels and legends fit, and are drawn once."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from mleredux_experiments.figures.pictures import _LABEL, _axes
from mleredux_experiments.figures.tables import cut

LABELS = {
    "none": [],
    "short": ["a", "b"],
    "long": ["leakage+planted-7@a-task-with-a-very-long-name-of-many-words", "all 12 tasks"],
    "capitals": ["ANAGENT@ABCDEF0123456789 WITH OPTIONS AND SOME MORE"],
    "wide": ["葉の病気を見つける競技会の課題名はとても長いのでここまで", "叶子"],
    "one letter": ["m" * 30],
    "too wide": ["叶" * 60],
}


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_labels_and_legends_fit_in_the_margins(kind: str, rows: int) -> None:
    names = [cut(name, _LABEL) for name in LABELS[kind]]
    figure, axes = _axes(1.6 + 0.2 * max(len(names), 2) + 0.2 * rows, names, rows)
    for number in range(4 * rows):
        axes.plot([0, 1], [0, 1], label=f"outcome {number}")
    axes.set(xlabel="a measure of runs, %", ylabel="" if names else "runs with a medal, %")
    if names:
        axes.set_yticks(range(len(names)), names, fontsize=8)
    legend = figure.legend(loc="lower center", fontsize=8, ncols=4, frameon=False) if rows else None
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    drawn = axes.get_tightbbox(renderer)
    assert drawn is not None
    assert (
        (drawn.x0 >= 0 or kind == "too wide")
        and drawn.y0 >= 0
        and drawn.x1 <= figure.bbox.x1
        and drawn.y1 <= figure.bbox.y1
    )
    assert axes.bbox.width > figure.bbox.width / 3, "there is room for the plot itself"
    if legend is not None:
        assert legend.get_window_extent(renderer).y1 <= drawn.y0 + 4
    assert figure.get_layout_engine() is None
