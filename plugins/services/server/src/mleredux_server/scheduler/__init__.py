"""The scheduler: assigns queued jobs to workers and follows them to their end.

| modules | contents |
|---|---|
| `startup`, `adoption` | the database compared with the disk; directories without a row |
| `dispatcher` | the thread that assigns jobs and follows them |
| `backlog`, `history`, `decision`, `forecast` | the queue; past use; which runs start now; when others may |
| `jobs`, `leases`, `budgets`, `tally` | jobs in the database; their deadlines; what ends experiments; counters |
| `pool`, `worker`, `worklog` | processes; what one does; the log that they share |
| `remote`, `node`, `loans` | runs at an executor, the program there, and secrets for it |
| `sandbox_health`, `actions` | broken sandboxes; cancel, retry and delete |
"""
