"""Servers and clusters for the tests of this repository; not shipped.

| module | content |
|---|---|
| `postgresql` | a PostgreSQL server |
| `s3` | an S3 server, and nodes that share only it |
| `server_local` | mleredux's server in this process |
| `server_docker` | a Docker engine with a private folder |
| `server`, `ports` | mleredux's server as a process; free ports |
| `commands`, `pages`, `imports` | the command line; shell commands in Markdown pages; lazy imports |
| `lab`, `gate`, `installed` | runs for tests of executors; an agent that waits; installed plugins |
| `disk_attacks` | attacks on the disk limit |
| `slurm`, `ray_cluster`, `ray_nodes` | clusters of several nodes on this machine |
"""
