"""Serve files of runs over HTTP: agents' output files are hostile, in names as well as contents.

| modules | contents |
|---|---|
| `uploads`, `packages` | files and folders received |
| `manifest`, `names` | which files a run has; their names in headers and archives |
| `access`, `masks` | files opened through no link; secrets masked |
| `ranges`, `responses`, `archives` | files sent: in ranges, as a whole, all in one archive |
"""
