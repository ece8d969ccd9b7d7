#!/usr/bin/env bash
# Something happens to one rank of a job: fsdp-why and fsdp-top name it, while the job hangs and from the files that it leaves.
#
#   check_faults.sh PROGRAM WHY TOP RANKS GO_ON MPIEXEC_AND_ITS_ARGUMENTS...
#
# The last rank is the victim. FSDP_NODE_SIZE decides which ranks are a node. With its option GO_ON, MPIEXEC leaves the others
# alone when a rank ends; none: it has no such option, and kills them at once, so that they leave no records.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

program=$1 why=$2 top=$3 ranks=$4 go_on=$5
shift 5
mpiexec=("$@")
victim=$((ranks - 1))
limit=$((120 * ${TEST_TIME_FACTOR:-1}))
export FSDP_RECORD_DIR=$folder/records
export OMPI_MCA_odls_base_sigkill_timeout=2 # ranks may write their records, as without the setting of the tests

start() { # FAULT [OPTION-OF-MPIEXEC...]
    rm -rf "$folder"/process.* "$FSDP_RECORD_DIR"
    : >"$folder/log"
    # shellcheck disable=SC2016 # expanded by each rank
    timeout -k 5 "$limit" "${mpiexec[0]}" "${@:2}" "${mpiexec[@]:1}" bash -c '
        echo $$ >"$1/process.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"
        shift
        exec "$@"' bash "$folder" "$program" "$1" "$victim" >"$folder/log" 2>&1 </dev/null &
    job=$!
}

end() {
    local file
    for file in "$folder"/process.*; do
        kill -KILL "$(<"$file")" 2>/dev/null || true # those that hang
    done
    kill $job 2>/dev/null || true
    wait $job || true
}

# Until fsdp-why gives this status for the job that runs; its output is then in $folder/out.
await() { # STATUS FAULT
    local status=0
    for ((n = 0; n < 10 * limit; n++)); do
        if [[ -s $folder/process.0 ]]; then
            status=0
            "$why" --after 1 "$(<"$folder/process.0")" >"$folder/out" 2>"$folder/err" || status=$?
            ((status != $1)) || return 0
        fi
        kill -0 $job 2>/dev/null || fail "$2: the job ended, and fsdp-why gave status $status and not $1: $(<"$folder/out")"
        sleep 0.1 # until the fault has come, and others have waited for a second
    done
    fail "$2: fsdp-why gives status $status, and not $1"
}

expect() { # FILE WORDS
    tr '\n' ' ' <"$1" | grep -qiE -- "$2" || fail "'$2' is not in: $(<"$1")"
}

# The victim has its row, and no other rank has a mark.
check_top() { # WORDS-OF-THE-ROW
    "$top" --once --after 1 --pid "$(<"$folder/process.0")" >"$folder/top" 2>"$folder/err" || fail "fsdp-top ended with $?"
    grep -qE "^ +$victim .*$1.*<--\$" "$folder/top" || fail "fsdp-top does not show rank $victim: $(<"$folder/top")"
    (($(grep -c -- '<--' "$folder/top") == 1)) || fail "fsdp-top marks others too: $(<"$folder/top")"
    (($(grep -cE '^ +[0-9]+ ' "$folder/top") == ranks)) || fail "fsdp-top has not $ranks rows: $(<"$folder/top")"
    expect "$folder/top" "rank $victim on .*(never came to operation|had come to)"
}

# The job hangs: what is said of it, from its memory and as other hosts would send it.
live() { # FAULT STATUS WORDS WORDS-OF-THE-ROW
    if [[ $1 == kill ]]; then
        FSDP_TIMEOUT_S=0 start "$1" "$go_on"
    else
        FSDP_TIMEOUT_S=0 start "$1"
    fi
    await "$2" "$1"
    expect "$folder/out" "rank $victim on [^ ]+ \(process $(<"$folder/process.$victim")\) $3"
    expect "$folder/out" 'h\.4 (behind the backward|for the forward) pass|agreement'
    check_top "$4"
    "$why" --after 1 --remote "$top" --job "sh -c 'exec \"\$@\"' sh" --json >"$folder/out" 2>"$folder/err" && fail "$1: --job: status 0"
    expect "$folder/out" "\"status\": $2,"
    expect "$folder/out" "\"first\": .\"rank\": $victim,"
    "$why" --after 1 --remote "$top" --rsh "$folder/rsh" here --save "$folder/saved" >"$folder/out" 2>"$folder/err" && fail "$1: hosts: status 0"
    expect "$folder/out" "rank $victim on [^ ]+ \(process [0-9]+\) $3"
    local status=0
    "$why" --after 1 "$folder/saved" >"$folder/out" 2>"$folder/err" || status=$?
    ((status == $2)) || fail "$1: saved records give status $status: $(<"$folder/out")"
    end
}

# The job ends: what is said of the files.
dead() { # FAULT STATUS WORDS
    local status=0
    FSDP_TIMEOUT_S=2 start "$1"
    wait $job || true
    end
    "$why" "$FSDP_RECORD_DIR" >"$folder/out" 2>"$folder/err" || status=$?
    ((status == $2)) || fail "$1: fsdp-why gives status $status and not $2"
    expect "$folder/out" "$3"
}

printf '#!/bin/sh\nshift\nexec "$@"\n' >"$folder/rsh" # stands in for ssh: on this host
chmod +x "$folder/rsh"

live stop 11 'is stopped' 'stopped'
live loop 10 'is in its own code, since [0-9:]{8}, ' 'its own code'
dead stop 11 "rank $victim on .*is stopped"
dead loop 10 "rank $victim on .*is in its own code, since"
if [[ $go_on != none ]]; then
    live kill 12 'is gone' 'gone'
    dead kill 12 "rank $victim on .*is gone"
    dead exit 12 "rank $victim on .*is gone"
fi
dead segv 14 "rank $victim on .*has died of signal 11"
dead mismatch 16 "different calls of operation [0-9]+: ranks? 0.* called reduce_scatter of h\.4.*, and rank $victim called barrier"

# refuses STATUS WORDS COMMAND...
refuses() {
    local status=0
    "${@:3}" >"$folder/out" 2>"$folder/err" || status=$?
    ((status == $1)) || fail "${*:3}: status $status and not $1"
    expect "$folder/err" "$2"
}
refuses 2 "frog: this is no job's number" "$why" --slurm frog
refuses 3 "is 'frog', which is no job's number" "$top" --once --slurm frog
refuses 3 "there is no record that can be read" "$why" --slurm 999999999

# Nothing is wrong, but one rank is late in every step.
FSDP_TIMEOUT_S=0 start slow
await 17 slow
expect "$folder/out" "rank $victim on .*is always last: in [0-9]+ of the last [0-9]+ operations in which ranks waited for another, by [0-9.]+ m?s"
end
echo "rank $victim: named whatever has happened to it"
