"""A server as what works the commands of `mleredux … --server URL`, and commands that only a server has."""
