#!/bin/sh
# Becomes the agent's command, after the forwarder to validation, gateway and proxy listens (if the image has Python).
# Usage: entrypoint.sh VALIDATION GATEWAY PROXY COMMAND... with the names of their sockets, or `-` if there is none.
places=
[ -S "/mleredux/socket/$1" ] && places="/mleredux/socket/$1 5000"
[ -S "/mleredux/socket/$2" ] && places="$places /mleredux/socket/$2 4000"
[ -S "/mleredux/socket/$3" ] && places="$places /mleredux/socket/$3 3128"
if [ -n "$places" ]; then
    python=$(command -v python3 || command -v python)
    if [ -n "$python" ]; then
        # Names of sockets hold no spaces.
        "$python" -I -S /mleredux/inside/forwarder.py $places </dev/null >/dev/null 2>&1 || :
    else
        for name in "$2" "$3"; do
            [ "$name" = - ] || echo "mleredux: the image has no Python: connect to /mleredux/socket/$name instead." >&2
        done
    fi
fi
for name in instructions instructions_obfuscated; do
    # They are mounted, and this fails, unless the container's own file system may be written.
    cp /task/instructions.md "/home/$name.txt" 2>/dev/null || :
done
# Without the hooks of NVIDIA's toolkit, the loader does not know the driver's libraries.
[ ! -e /mleredux/driver/libcuda.so.1 ] || export LD_LIBRARY_PATH="/mleredux/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
shift 3
unset name places python
exec "$@"
