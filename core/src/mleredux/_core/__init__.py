"""Everything of mleredux that is not public: it may change in any release. Plugins use `mleredux.plugin`.

From the command line down to the ground floor, which is `mleredux.models`; `.importlinter` has the layers.

| modules | contents |
|---|---|
| `cli`, `api` | the command line, one file a command; the Python API |
| `checks` | this machine's setup; whether certain tasks and agents will run on it |
| `records`, `pages` | tasks and agents as plain records, runs in notebooks; pages that plugins add |
| `planning` | a request becomes run plans: validated, allowed here, and granted |
| `executors`, `loans` | the protocols of what executes runs elsewhere; secrets that a service lends to one run |
| `pipeline`, `resume` | a run from `queued` to its end; interrupted runs |
| `stages`, `builtin` | prepare, build, run, grade, produce; their defaults |
| `data`, `locations` | the data of tasks: fetched, prepared, sampled; the folders of data and caches |
| `sandboxes`, `disuse` | agents as processes, and what they get: an image, tools, hosts; old images |
| `known_files`, `redirects`, `places`, `plain` | files that hold answers; redirects; names of places |
| `submissions`, `forkserver` | submissions, checked in a child process |
| `masks` | secrets masked |
| `store` | runs on disk: state, events, files |
| `plugins`, `protocols`, `moved` | discovery and import of plugins; roles with methods; names that moved to kits |
"""
