"""The scheduler: assigns queued jobs to workers and follows them to their end.

| modules | contents |
|---|---|
| `startup`, `adoption` | comparing the database with the disk; adopting directories without a row |
| `dispatcher` | the thread that assigns jobs and follows them |
| `backlog`, `history`, `decision`, `forecast` | the queue; past use; which runs start now; when the others will |
| `jobs`, `leases`, `budgets`, `tally` | jobs in the database; their deadlines; limits of experiments; counters |
| `pool`, `worker`, `worklog` | worker processes; the program of a worker; the shared log |
| `remote`, `node`, `loans` | runs on an executor, the program on its nodes, and secrets for it |
| `sandbox_health`, `actions` | broken sandboxes; cancel, retry and delete |
"""
