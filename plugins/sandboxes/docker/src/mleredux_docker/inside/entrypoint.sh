#!/bin/sh
# Becomes the agent's command, after the forwarder to the validation endpoint listens (where the image has Python).
here=/mleredux/inside
socket=/mleredux/socket/$1
shift
if [ -S "$socket" ]; then
    python=$(command -v python3 || command -v python)
    if [ -n "$python" ]; then
        "$python" -I -S "$here/forwarder.py" "$socket" 5000 </dev/null >/dev/null 2>&1 || :
    fi
fi
unset here socket python
exec "$@"
