"""Web pages of experiments and comparisons; their content comes from the same analysis as that of the commands."""
