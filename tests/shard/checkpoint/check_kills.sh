#!/usr/bin/env bash
# Runs of 03_gpt in which a random rank is killed (SIGKILL), half of them in a save, at a random one of the rank's writes,
# syncs and renames, half at a random moment: each is started again, goes on from `latest`, and ends with bitwise the
# weights of the run that nobody disturbed.
#
#   check_kills.sh KILLS SEED RANKS BAD_DISK PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
#
# BAD_DISK is the library to preload (bad_disk.c); MPIEXEC... starts RANKS ranks. The same SEED kills the same ranks at the same
# calls and after the same delays. 100 kills take some minutes.
set -euo pipefail

kills=$1 RANDOM=$2 ranks=$3 bad_disk=$4 program=$5 data=$6
shift 6
launch=("$@")

folder=$(mktemp -d)
folder=$(realpath "$folder")
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$*"
    exit 1
}

options=(--data "$data" --layers 1 --heads 2 --width 32 --context 32 --batch "$((ranks * 4))" --steps 40 --val-batches 1
    --sample 0 --progress off --exact)

# start [VARIABLE=VALUE...] -- OPTION...: a run in the background, whose ranks leave their process numbers in pids/.
start() {
    local variables=()
    while [[ $1 != -- ]]; do
        variables+=("$1")
        shift
    done
    shift
    rm -rf "$folder/pids" && mkdir "$folder/pids"
    # shellcheck disable=SC2016 # expanded by the ranks
    "${launch[@]}" bash -c 'touch "$0/$$" && exec env "$@"' "$folder/pids" ${variables[@]+"${variables[@]}"} \
        "$program" "${options[@]}" "$@" >"$folder/out" 2>&1 </dev/null &
    job=$!
}

weights() {
    grep '^exact parameters' "$folder/out" || fail "a run has not ended: $(cat "$folder/out")"
}

milliseconds() {
    echo "$(($(date +%s%N) / 1000000))"
}

all_started() {
    (($(find "$folder/pids" -type f | wc -l) == ranks))
}

# Whether all ranks have started and ended; those that nobody has waited for count as ended.
all_gone() {
    local pid stat
    all_started || return 1
    for pid in "$folder"/pids/*; do
        ! read -r stat 2>/dev/null <"/proc/${pid##*/}/stat" || [[ $stat == *") Z "* ]] || return 1
    done
}

# Waits for a run of which a rank is killed, and returns its status. Launchers have been seen to hang for good where a rank
# dies while it connects (mpirun in PMIx_server_finalize): with no rank left for 10 s, that one is ended.
end_of_job() {
    local alone=0
    while kill -0 "$job" 2>/dev/null; do
        sleep 0.1
        if all_gone; then ((++alone)); else alone=0; fi
        ((alone < 100)) || kill -KILL "$job"
    done
    wait "$job"
}

# Starts a run and kills one of its ranks in a save. False if it has ended before.
kill_in_save() {
    start "LD_PRELOAD=$bad_disk" FAULT=kill "FAULT_IN=$folder/run" "FAULT_RANK=$((RANDOM % ranks))" \
        "FAULT_CALL=$((1 + RANDOM % 100))" -- "$@"
    ! end_of_job
}

# Starts a run and kills one of its ranks within the time that the undisturbed run has taken. False if it has ended before.
kill_anywhere() {
    local pids delay=$((RANDOM * undisturbed / 32768))
    start -- "$@"
    until all_started || ! kill -0 "$job" 2>/dev/null; do
        sleep 0.002
    done
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    pids=("$folder"/pids/*)
    kill -KILL "$(basename "${pids[RANDOM % ranks]}")" 2>/dev/null || true
    ! end_of_job
}

begin=$(milliseconds)
start --
wait "$job" || fail "the undisturbed run: $(cat "$folder/out")"
undisturbed=$(($(milliseconds) - begin))
expected=$(weights)

killed=0 missed=0 in_save=0 resumed=0
while ((killed < kills)); do
    when=anywhere
    ((killed % 2 == 1)) || when=in_save
    sync=()
    ((RANDOM % 2)) || sync=(--async)
    rm -rf "$folder/run"
    if ! kill_$when --checkpoint "$folder/run" --every 1 "${sync[@]}"; then
        ((++missed < 5 * kills + 10)) || fail "$missed runs had ended before they were killed"
        continue
    fi
    killed=$((killed + 1))
    if [[ $when == in_save ]] || compgen -G "$folder/run/.step-*.partial" >/dev/null; then
        in_save=$((in_save + 1))
    fi
    start -- --checkpoint "$folder/run" --every 7 "${sync[@]}"
    wait "$job" || fail "kill $killed ($when): the run that went on: $(cat "$folder/out")"
    ! grep -q '^resumed ' "$folder/out" || resumed=$((resumed + 1))
    [[ $(weights) == "$expected" ]] || fail "kill $killed ($when): other weights: $(weights), not $expected"
    ! compgen -G "$folder/run/.*.partial" >/dev/null || fail "kill $killed: what an interrupted save has left is still there"
done
echo "$killed runs killed, $in_save of them in a save, $missed had ended before; $resumed went on from a checkpoint, the" \
    "others began anew: all ended with the same weights"
((2 * in_save >= killed && resumed > 0)) || fail "fewer than half in a save, or none went on from a checkpoint"
