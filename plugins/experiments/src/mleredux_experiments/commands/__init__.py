"""The commands of experiments, one module each."""
