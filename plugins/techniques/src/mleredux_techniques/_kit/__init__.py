"""Internals of the technique kit; `mleredux_techniques.kit` is its public interface."""
