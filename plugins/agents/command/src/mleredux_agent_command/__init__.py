"""Any program as an agent: what is installed, and the command that runs it, are options."""
