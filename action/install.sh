#!/usr/bin/env bash
# Installs ottla of this checkout in an environment of its own, with the versions and hashes of constraints.txt.
# OTTLA names an executable to use instead.
set -euo pipefail
[ -z "${OTTLA:-}" ] || exit 0
source="$(cd "$(dirname "$0")/.." && pwd)"
environment="${RUNNER_TEMP:?}/ottla-environment"
"${INPUT_PYTHON:-python3}" -m venv "$environment"
bin="$environment/bin"
cd "$source"
for part in run build; do
  "$bin/python" docker/requirements.py "$part" > "$environment/$part.txt"
  "$bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$environment/$part.txt"
done
"$bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
