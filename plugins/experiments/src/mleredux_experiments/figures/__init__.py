"""Presentation of an analysis: tables, plots, reports and exports.

| module | contents |
|---|---|
| `tables` | tables for the terminal, Markdown, LaTeX and CSV |
| `pictures` | figures, each with a question and its answer |
| `report` | the offline page, and files for other programs |
"""
