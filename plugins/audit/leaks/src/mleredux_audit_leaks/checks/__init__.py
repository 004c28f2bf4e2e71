"""The checks, one module per type of leak.

| modules | contents |
|---|---|
| `raw`, `values` | copies of the answers in public files; target values in public tables |
| `columns` | columns that predict the target: in public tables; in the training table only |
| `order` | ids, their order and the position of rows |
| `files` | names, sizes, times and headers of files |
| `duplicates`, `texts` | rows, files and long texts in both training and test data |
| `windows`, `groups` | overlapping windows of one series; groups in both training and test data |
| `outlines` | outlines of objects inside held-out masks |
| `sample` | the sample submission |
"""
