"""Web pages of experiments and comparisons; everything shown is of the analysis that the commands print."""
