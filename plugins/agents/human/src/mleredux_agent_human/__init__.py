"""People as agents.

`__main__` and its imports run inside the sandbox, without mleredux; `plugin` and the commands run on this machine.

| modules | contents |
|---|---|
| `plugin`, `agent` | registered agents and commands; the agent's declaration |
| `command` | the group `mleredux human` |
| `start`, `workspace` | `mleredux human start`; the run of the current folder |
| `session`, `transcript` | a shell inside the sandbox; its recorded commands and their output |
| `jupyter`, `kernel` | JupyterLab inside the sandbox; recorded cells and magic commands |
| `forward`, `jupyter_address`, `terminal` | forwarded connections; Jupyter's URL; a terminal attached to the shell |
| `submit`, `finish`, `release` | `mleredux human submit`, `mleredux human finish` and `mleredux runs release-grades` |
| `pages` | web pages: tasks, downloads, submissions and grades |
"""
