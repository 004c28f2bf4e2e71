"""Where runs are executed when not in this process: on this machine or through an engine such as Slurm.

| module | contents |
|---|---|
| `protocol`, `local` | what places runs on machines; processes of this machine |
| `tickets`, `elsewhere` | which job may execute a run; runs given to an executor and followed |
| `node` | the program on a node, which executes one run |
| `objects`, `snapshots`, `shelf` | object stores; folders as pieces; prepared data on its way to nodes |
| `publication`, `replica`, `stored_runs` | a run published by its node, and read from there |
"""
