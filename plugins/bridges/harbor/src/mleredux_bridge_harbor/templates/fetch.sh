#!/bin/sh
# Fetches the data with your own access and fills it in: environment/data, tests/data and solution. {why}
set -eu
cd "$(dirname "$0")"
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -r tests/requirements.txt
PYTHONPATH=tests/packages PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m mleredux_bridge_harbor.contents {arguments}
