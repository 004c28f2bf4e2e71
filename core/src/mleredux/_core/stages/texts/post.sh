#!/bin/sh
# @PURPOSE@
url="${MLEREDUX_@NAME@_URL:-http://localhost:5000/@PLACE@}"
if [ $# -gt 0 ] && [ ! -f "$1" ]; then
    echo "$1 is not a file." >&2
    exit 2
fi
if command -v curl >/dev/null 2>&1; then
    if [ $# -gt 0 ]; then exec curl -sS -X POST -F "file=@$1" "$url"; fi
    exec curl -sS -X POST "$url"
fi
python=python3
command -v "$python" >/dev/null 2>&1 || python=python
exec "$python" - "$url" "$@" <<'PY'
import sys, urllib.error, urllib.request
body = open(sys.argv[2], "rb").read() if len(sys.argv) > 2 else b""
request = urllib.request.Request(sys.argv[1], data=body, method="POST")
request.add_header("Content-Type", "application/octet-stream")
try:
    answer = urllib.request.urlopen(request, timeout=600)
except urllib.error.HTTPError as error:
    answer = error
print(answer.read().decode())
PY
