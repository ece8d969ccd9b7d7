#!/usr/bin/env bash
# A run of 03_gpt that is told to stop saves, ends with status 75 where the launcher hands that on, and resumes: by SIGUSR1 or SIGTERM of
# one rank, by SIGUSR1 of the launcher, by SIGUSR1 again and again, and by SIGTERM of the launcher where that leaves the ranks time.
#
#   check_stop.sh RANKS FLAVOUR PROGRAM DATA MPIEXEC NUMPROC_FLAG [MPIEXEC_FLAG]...
#
# FLAVOUR is openmpi or mpich.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

ranks=$1 flavour=$2 program=$3 data=$4
shift 4
launch=("$1" "$2" "$ranks" "${@:3}")

# More steps than anyone waits for: only a signal makes one of them save.
options=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch "$((ranks * 4))" --val-batches 1 --sample 0
    --steps 1000000 --every 1000000 --interval 200 --progress off)

# start FOLDER: a run in the background, whose ranks leave their process numbers in pids/; returns once it trains.
start() {
    rm -rf "$folder/pids" "$folder/out" && mkdir "$folder/pids"
    # shellcheck disable=SC2016 # expanded by the ranks
    "${launch[@]}" ${more[@]+"${more[@]}"} bash -c 'touch "$0/$$" && exec "$@"' "$folder/pids" \
        "$program" "${options[@]}" --checkpoint "$1" >"$folder/out" 2>&1 </dev/null &
    job=$!
    until grep -qs '^step ' "$folder/out"; do
        kill -0 "$job" 2>/dev/null || fail "a run has ended by itself: $(cat "$folder/out")"
        sleep 0.05
    done
}

one_rank() {
    local pids=("$folder/pids"/*)
    basename "${pids[0]}"
}

# saved STATUS: the run that was told to stop has; the one that is started next resumes.
saved() {
    local status=0 latest
    wait "$job" || status=$?
    ((status == $1)) || fail "$what: status $status, not $1: $(cat "$folder/out")"
    latest=$(cat "$folder/run/latest") || fail "$what: nothing was saved: $(cat "$folder/out")"
    start "$folder/run"
    grep -q "^resumed .*$latest: " "$folder/out" || fail "$what: nothing was resumed"
    kill -USR1 "$(one_rank)"
    wait "$job" || true
    rm -rf "$folder/run"
    echo "$what: saved"
}

more=()
for signal in USR1 TERM; do
    what="SIG$signal of a rank"
    start "$folder/run"
    kill "-$signal" "$(one_rank)"
    saved 75
done

what="SIGUSR1 of the launcher"
start "$folder/run"
kill -USR1 "$job"
saved 75

# One that has saved may not die of it before the others have ended.
what="SIGUSR1 of a rank, again and again"
start "$folder/run"
rank=$(one_rank)
while kill -USR1 "$rank" 2>/dev/null; do :; done
saved 75

# Open MPI hands SIGTERM on after so many seconds, waits as long, and ends with a status of its own. Meanwhile it reads no output: few
# lines are printed.
what="SIGTERM of the launcher"
status=75
[[ $flavour != openmpi ]] || { more=(--mca odls_base_sigkill_timeout 5) && status=1; }
start "$folder/run"
kill -TERM "$job"
more=()
saved "$status"
