"""A real baseline agent for tables, texts and small images, without an LLM.

mleredux imports `plugin`, `agent` and `settings`. Everything else runs inside the sandbox and never imports mleredux.

| modules | contents |
|---|---|
| `plugin`, `agent`, `settings` | the registered agent; its declaration; its options and the division of its time |
| `process`, `work` | the process with its time limit, log, trace and first submission; all steps in order |
| `files` | table files among the public files; the task's metadata and description |
| `tables` | tables of several formats; training table, test table, sample submission |
| `problem` | targets, inferred from the tables, the sample submission and the metric |
| `columns`, `features`, `images` | types of columns; numeric features, including those of images |
| `models`, `metrics`, `fit` | candidate models; metrics on held-out rows; one candidate fitted, and several blended |
| `search` | cross-validation of the candidates |
| `solve`, `export` | final predictions and the submission file; the solution as one script |
| `kit` | functions for other agents |
"""
