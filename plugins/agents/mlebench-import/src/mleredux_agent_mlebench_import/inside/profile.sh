# Defines conda for this shell, so that it can change the shell's variables.
conda() {
    case ${1:-} in
        activate)
            local wanted=${2:-base} prefix
            case $wanted in
                base | root) prefix=/opt/conda ;;
                /*) prefix=$wanted ;;
                *) prefix=/opt/conda/envs/$wanted ;;
            esac
            if [ ! -x "$prefix/bin/python" ]; then
                echo "conda: there is no environment '$wanted'." >&2
                return 1
            fi
            [ -n "${_CONDA_PATH_BEFORE:-}" ] || _CONDA_PATH_BEFORE=$PATH
            export PATH="$prefix/bin:$_CONDA_PATH_BEFORE" CONDA_PREFIX="$prefix" CONDA_DEFAULT_ENV="$wanted"
            ;;
        deactivate)
            [ -z "${_CONDA_PATH_BEFORE:-}" ] || export PATH="$_CONDA_PATH_BEFORE"
            unset _CONDA_PATH_BEFORE CONDA_PREFIX CONDA_DEFAULT_ENV
            ;;
        *) command conda "$@" ;;
    esac
}
