"""Serve files of runs over HTTP. Agents' output files are hostile in both name and content.

| modules | contents |
|---|---|
| `uploads`, `packages` | receiving files and folders |
| `manifest`, `names` | which files a run has; their names in headers and archives |
| `access`, `masks` | opening files without following links; masking secrets |
| `ranges`, `responses`, `archives` | sending files: in ranges, as a whole, all in one archive |
"""
