#!/usr/bin/env bash
# Prints the end of the broker's log as a group, in which no line is a command for the runner.
set -euo pipefail
LINES_MAX=2000
home="${RUNNER_TEMP:?}/ottla"
[ -e "$home/log" ] || { echo "ottla was not started"; exit 0; }
if kill -0 "$(cat "$home/pid")" 2> /dev/null; then state="still runs"; else state="has ended"; fi
token="stop-$RANDOM$RANDOM$RANDOM$RANDOM"
echo "::group::The log of ottla, which $state"
echo "::stop-commands::$token"
tail -n "$LINES_MAX" "$home/log"
echo "::$token::"
echo "::endgroup::"
