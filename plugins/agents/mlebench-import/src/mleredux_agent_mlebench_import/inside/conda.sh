#!/bin/bash
# Stands in for conda: environments are Python's own, in /opt/conda/envs; packages come from pip.
umask 0
root=/opt/conda

prefix_of() {
    case $1 in
        base | root) echo "$root" ;;
        /*) echo "$1" ;;
        *) echo "$root/envs/$1" ;;
    esac
}

need() {
    [ -x "$(prefix_of "$1")/bin/python" ] && return
    echo "conda: there is no environment '$1'; 'conda create -n $1' creates it." >&2
    exit 1
}

make_env() {
    local prefix
    prefix=$(prefix_of "$1")
    mkdir -p "$(dirname "$prefix")"
    python3 -m venv --system-site-packages --without-pip "$prefix" || exit 1
    for name in pip pip3; do
        # pip of the base image, for this environment
        printf '#!/bin/sh\numask 0\nexec %s/bin/python -m pip --disable-pip-version-check "$@"\n' "$prefix" \
            >"$prefix/bin/$name"
        chmod 755 "$prefix/bin/$name"
    done
}

# Sets name and rest from options that conda's commands share.
parse() {
    name=${CONDA_DEFAULT_ENV:-base} rest=()
    while [ $# -gt 0 ]; do
        case $1 in
            -n | --name | -p | --prefix) name=$2 && shift ;;
            --name=* | --prefix=*) name=${1#*=} ;;
            -c | --channel | --solver) shift ;;
            -y | --yes | -q | --quiet | -v | --no-capture-output | --live-stream | --override-channels | --json) ;;
            --channel=* | --solver=* | --update-deps | --freeze-installed | --no-deps) ;;
            --cwd) cd "$2" && shift || exit 1 ;;
            -*) [ "$subcommand" = run ] && break || { echo "conda: this stand-in has no option $1." >&2; exit 1; } ;;
            *) [ "$subcommand" = run ] && break || rest+=("$1") ;;
        esac
        shift
    done
    [ "$subcommand" = run ] && rest=("$@")
    return 0
}

pip_install() {
    local wanted=()
    for spec in "${rest[@]}"; do
        case $spec in
            python | python=* | python[\<\>]* | pip | pip=* | setuptools | wheel) ;; # what the base image has
            *==* | *[\<\>]*) wanted+=("$spec") ;;
            *=*) wanted+=("${spec%%=*}==$(echo "${spec#*=}" | cut -d= -f1 | sed 's/\.\*$//').*") ;; # 2.0 is any 2.0.x
            *) wanted+=("$spec") ;;
        esac
    done
    [ ${#wanted[@]} -eq 0 ] || "$(prefix_of "$name")/bin/python" -m pip install --disable-pip-version-check "${wanted[@]}"
}

subcommand=${1:-help}
[ $# -gt 0 ] && shift
case $subcommand in
    run)
        parse "$@"
        need "$name"
        prefix=$(prefix_of "$name")
        export PATH="$prefix/bin:$PATH" CONDA_PREFIX=$prefix CONDA_DEFAULT_ENV=$name
        exec "${rest[@]}"
        ;;
    create)
        parse "$@"
        make_env "$name"
        pip_install
        ;;
    install | update | upgrade)
        parse "$@"
        need "$name"
        pip_install
        ;;
    list)
        parse "$@"
        need "$name"
        exec "$(prefix_of "$name")/bin/python" -m pip list
        ;;
    env | info)
        case "$*" in
            list | --envs | -e | "list "*)
                printf '%-20s %s\n' base "$root"
                for prefix in "$root"/envs/*/; do [ -d "$prefix" ] && printf '%-20s %s\n' "$(basename "$prefix")" "${prefix%/}"; done
                ;;
            --base) echo "$root" ;;
            *) echo "conda: this stand-in creates environments with 'conda create', not from files." >&2 && exit 1 ;;
        esac
        ;;
    shell.*) cat "$root/etc/profile.d/conda.sh" ;;
    clean | init | config | notices) ;;
    --version | -V) echo "conda 0 (stand-in over venv and pip)" ;;
    activate | deactivate)
        echo "conda: first eval \"\$(conda shell.bash hook)\", then conda $subcommand." >&2
        exit 1
        ;;
    *)
        echo "conda: this stand-in has no command '$subcommand'; it has run, create, install, list, env list, activate, clean." >&2
        exit 1
        ;;
esac
