"""The tables of any competition in one form, and what can be measured of columns, rows and splits.

| module | contents |
|---|---|
| `tables` | find and read tables among prepared files |
| `folders` | images whose labels are in their paths |
| `images` | images beside a table, described by numbers |
| `columns` | kinds of columns, classes, amounts |
| `structure` | how the test was split off: groups, time |
| `dataset` | a dataset in memory and in a folder |
| `discovery` | from the files of a competition to a dataset |
| `splits` | rows to evaluate on, and their folds |
| `sample` | a maximum number of rows |
| `association` | rank measures of two columns |
| `views` | the ways in which a column may tell a target |
| `skill` | how well they do, in training and from there on the test |
| `near` | equal and nearly equal rows |
| `memory` | results that are computed once per dataset |
| `threads` | one thread for linear algebra |
"""
