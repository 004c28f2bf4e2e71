"""The tables of any competition in one form, and measurements of columns, rows and splits.

| module | contents |
|---|---|
| `tables` | find and read tables among prepared files |
| `folders` | images labeled by their paths |
| `images` | images listed in a table, described by numbers |
| `columns` | column kinds, classes, amounts |
| `structure` | how the test set was split off: groups, time |
| `dataset` | a dataset in memory and in a folder, and results cached for it |
| `discovery` | build a dataset from the files of a competition |
| `splits` | rows for evaluation, samples of large tables, and folds |
| `association` | rank association of two columns |
| `views` | the ways in which a column may be predictive of the target |
| `skill` | how predictive views are, cross-validated and on the test set |
| `near` | duplicate and near-duplicate rows |
| `threads` | single-threaded linear algebra |
"""
