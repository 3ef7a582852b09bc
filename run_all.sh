#!/usr/bin/env bash
# One command: finds or makes the environment, then runs the notebooks of a profile. See ./run_all.sh --help.
set -euo pipefail
repo=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

python=
for candidate in "${VIRTUAL_ENV:-}/bin/python" "${CONDA_PREFIX:-}/bin/python" \
    python3.13 python3.12 python3.11 python3 python; do
    if command -v -- "$candidate" > /dev/null &&
        "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "run_all.sh: Python 3.11 or newer is needed and none was found." >&2
    echo "Install it, or activate the conda environment of environment.yml, and try again." >&2
    exit 1
fi

# Wrong words end here, before anything is installed; so does --help.
export PYTHONPATH="$repo/lib${PYTHONPATH:+:$PYTHONPATH}"
outputs=$("$python" -m saber.run.arguments "$@")
case "$outputs" in
    /*) ;;
    *)
        printf '%s\n' "$outputs"
        exit 0
        ;;
esac
python=$("$python" -I "$repo/lib/saber/run/environment.py" "$outputs")
exec "$python" -m saber.run "$@"
