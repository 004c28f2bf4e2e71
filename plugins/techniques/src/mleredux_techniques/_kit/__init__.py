"""The insides of the technique kit; `mleredux_techniques.kit` is its public surface."""
