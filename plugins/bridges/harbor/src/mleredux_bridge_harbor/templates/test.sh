#!/bin/sh
# Grades the submission by mleredux; the reward is in reward.json.
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
[ -d "$tests/packages" ] || python3 -m tarfile -e "$tests/packages.tar.xz" "$tests"
export PYTHONPATH="$tests/packages" PYTHONDONTWRITEBYTECODE=1
submission=${{SUBMISSION:-{submission}}} logs=${{LOGS:-/logs/verifier}}
exec python3 "$tests/grade.py" "$submission" {task} {rule} {invalid} "$tests/data" "$logs"
