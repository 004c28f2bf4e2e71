"""Everything of mleredux that is not public: it may change in any release. Plugins use `mleredux.plugin`.

From the command line down to the ground floor, which is `mleredux.models`; `.importlinter` has the layers.

| modules | contents |
|---|---|
| `cli`, `api` | the command line, one file a command; the Python API |
| `doctor`, `readiness` | checks of this machine; whether certain tasks and agents will run on it |
| `records`, `display`, `pages` | tasks and agents as plain records; runs in notebooks; pages that plugins add |
| `plans`, `own_machine`, `grants` | a request becomes a plan: validated, allowed here, and granted |
| `capabilities`, `agent_options`, `agent_builders` | agents matched with sandboxes; their options; their builds |
| `executors`, `loans` | where runs are executed; secrets that a service lends to one run |
| `pipeline`, `resume` | a run from `queued` to its end; interrupted runs |
| `stages`, `builtin`, `progress` | prepare, build, run, grade, produce; their defaults; how far they are |
| `data`, `archives`, `checksums`, `space`, `debug_sample` | the data of a task: fetched, prepared, sampled |
| `locations`, `installation`, `canary` | where data is; the secret salt of this installation; the mark of answers |
| `task_images`, `tools`, `egress` | what a sandbox gets: an image, tools, a way to allowed hosts |
| `sandboxes`, `containers`, `disuse` | agents as processes or in containers; old images |
| `submissions`, `execution`, `forkserver` | submissions, checked in a child process; those that are programs |
| `tables`, `functions`, `medals` | tables matched with answers; functions as metrics; medals |
| `masks`, `judge`, `sessions`, `rewards` | secrets masked; a model that judges runs; open sessions; rewards |
| `rollout`, `programs`, `exports`, `export_format` | trajectories; agents' programs; runs for other systems |
| `store` | runs on disk: state, events, files |
| `plugins`, `protocols` | discovery and import of plugins; the roles that have methods |
"""
