"""Competitions on real data sets that ship inside scikit-learn: no account, no download, no Docker."""
