"""The private part of mleredux, which may change in any release. Plugins use `mleredux.plugin`.

Listed from the command line down to the lowest layer, `mleredux.models`; `.importlinter` defines the layers.

| modules | contents |
|---|---|
| `cli`, `api` | the command line, one file per command; the Python API |
| `checks` | this machine's setup; whether given tasks and agents will run on it |
| `records`, `pages` | tasks and agents as plain records, runs in notebooks; pages that plugins add |
| `planning` | turns a request into run plans: validated, permitted and with their grants |
| `executors`, `loans` | the protocols for executing runs elsewhere; secrets that a service provides to one run |
| `pipeline`, `resume` | executes a run from start to end; resumes interrupted runs |
| `stages`, `builtin` | prepare, build, run, grade, produce; their defaults |
| `data`, `locations` | fetching, preparing and sampling the data of tasks; the folders for data and caches |
| `sandboxes`, `disuse` | agents as processes, with their images, tools and hosts; unused images |
| `redirects`, `places`, `plain` | redirects; names of places; plain paths |
| `submissions`, `forkserver` | submissions, checked in a child process |
| `launcher` | the process that limits an agent, and outlives this program |
| `masks` | masking of secrets |
| `store` | runs on disk: state, events, files |
| `plugins`, `protocols`, `moved` | discovery and import of plugins; roles with methods; names that have moved to kits |
"""
