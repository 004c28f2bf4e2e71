#!/bin/sh
# usage: mleredux-validate [FILE]
# Check the format of a submission. Exit codes: 0 well-formed, 1 not well-formed, 2 could not be checked.
file=${1:-$MLEREDUX_SUBMISSION}
if [ ! -f "$file" ] || [ ! -r "$file" ]; then
    echo "The file '$file' does not exist or can't be read. Usage: $0 FILE" >&2
    exit 2
fi
if command -v curl >/dev/null 2>&1; then
    answer=$(curl -sS --noproxy '*' -F 'file=@-;filename=submission' http://localhost:5000/validate <"$file") || exit 2
elif command -v python3 >/dev/null 2>&1; then
    answer=$(python3 -I -c '
import http.client, os, sys
try:
    connection = http.client.HTTPConnection("127.0.0.1", 5000)
    headers = {"Content-Type": "text/csv", "Content-Length": str(os.path.getsize(sys.argv[1]))}
    connection.request("POST", "/validate", open(sys.argv[1], "rb"), headers)
    print(connection.getresponse().read().decode("utf-8", "replace").strip())
except (OSError, http.client.HTTPException) as error:
    sys.exit("The validation endpoint does not respond: %s" % error)
' "$file") || exit 2
else
    echo "The image has neither curl nor python3 to send the file to http://localhost:5000/validate." >&2
    exit 2
fi
printf '%s\n' "$answer"
case $answer in
    *'"valid": true'* | *'"valid":true'*) exit 0 ;;
    *'"valid"'*) exit 1 ;;
    *) exit 2 ;;
esac
