#!/usr/bin/env bash
# Starts a broker beside the job and returns when it serves. Its log, data and process id are in RUNNER_TEMP/ottla.
set -euo pipefail
START_SECONDS=60
home="${RUNNER_TEMP:?}/ottla"
ottla="${OTTLA:-$RUNNER_TEMP/ottla-environment/bin/ottla}"
mkdir -p "$home"

settings=()
while IFS= read -r line; do
  line="${line#"${line%%[![:space:]]*}"}"
  line="${line%"${line##*[![:space:]]}"}"
  case "$line" in
    '' | '#'*) ;;
    *=*) settings+=("$line") ;;
    *) echo "::error::ottla: '$line' in 'settings' is not key=value"; exit 2 ;;
  esac
done <<< "${INPUT_SETTINGS:-}"
[ -z "${INPUT_SCENARIO:-}" ] || settings+=("ottla.lab.scenario=$INPUT_SCENARIO")

: > "$home/announced"
nohup "$ottla" serve --announce "--lab=${INPUT_LAB_PORT:-9644}" \
  "listeners=PLAINTEXT://127.0.0.1:${INPUT_PORT:-9092}" "log.dirs=$home/data" ${settings[@]+"${settings[@]}"} \
  > "$home/announced" 2> "$home/log" < /dev/null &
pid=$!
echo "$pid" > "$home/pid"

for ((tenth = 0; tenth < START_SECONDS * 10; tenth++)); do
  [ "$(wc -l < "$home/announced")" -eq 0 ] || break
  kill -0 "$pid" 2> /dev/null || break
  sleep 0.1
done
if [ "$(wc -l < "$home/announced")" -eq 0 ]; then
  why="did not start; its log says why"
  ! kill "$pid" 2> /dev/null || why="did not start within $START_SECONDS s"
  cat "$home/log"
  echo "::error::ottla $why"
  exit 1
fi
read -r servers lab < "$home/announced"
printf 'bootstrap_servers=%s\nlab_url=%s\n' "$servers" "$lab" >> "${GITHUB_OUTPUT:-/dev/null}"
printf 'OTTLA_BOOTSTRAP_SERVERS=%s\nOTTLA_LAB=%s\n' "$servers" "$lab" >> "${GITHUB_ENV:-/dev/null}"
echo "ottla serves Kafka clients at $servers, and its HTTP API at $lab"
