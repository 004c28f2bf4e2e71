#!/bin/sh
# Nearest centroid with awk.
set -e
cd "$MLEREDUX_DATA_DIR"
awk -F, 'FNR == 1 { file++; next }
  file == 1 { n[$5]++; p[$5] += $2; s[$5] += $3; next }
  { best = ""
    for (k in n) {
      d = ($2 - p[k] / n[k]) ^ 2 + ($3 - s[k] / n[k]) ^ 2
      if (best == "" || d < least) { best = k; least = d }
    }
    print $1 "," best }' train.csv test.csv > "$MLEREDUX_SCRATCH_DIR/rows"
{ echo id,species; sort -n "$MLEREDUX_SCRATCH_DIR/rows"; } > "$MLEREDUX_SUBMISSION"
