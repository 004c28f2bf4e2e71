"""Blending of given predictions: the technique `ensembling`."""
