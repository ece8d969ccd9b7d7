#!/usr/bin/env bash
# Runs a program under valgrind on several ranks and fails if the library leaks, or touches memory that it must not.
#
#   check_leaks.sh RANKS MPIEXEC [FLAG]... PROGRAM
#
# MPI keeps memory of its own until the process ends, also on behalf of calls that the library makes. A block counts as
# the library's where the function that asked malloc for it is one of its own; an invalid access counts wherever one of
# its functions is on the stack.
set -euo pipefail

command -v valgrind >/dev/null || {
    echo "skipped: valgrind is not installed"
    exit 77
}
ranks=$1
shift
program=${*: -1}
launch=("${@:1:$#-1}")
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

"${launch[@]}" valgrind --leak-check=full --show-leak-kinds=all --log-file="$logs/%p" "$program" </dev/null

files=("$logs"/*)
if ((${#files[@]} != ranks)); then
    echo "${#files[@]} logs of valgrind instead of $ranks"
    exit 1
fi
awk '
    function judge() {
        if (record != "" && guilty) {
            print record
            found++
        }
        record = ""; guilty = 0; frame = 0
    }
    / (is|are) (definitely|indirectly|possibly) lost|still reachable in loss record/ { judge(); kind = "leak" }
    /Invalid (read|write|free)|Conditional jump|uninitialised/ { judge(); kind = "access" }
    /^==[0-9]+== *$/ { judge(); next }
    / (at|by) 0x/ {
        frame++
        if (/[ :]fsdpi?_|libfsdp/ && (kind == "access" || frame <= 2)) guilty = 1
        if (kind == "leak" && frame == 2 && /(host_alloc|queue\.c|memory\.c|context\.c)/) guilty = 1
    }
    { record = record $0 "\n" }
    END { judge(); exit found > 0 }
' "${files[@]}"
grep -h 'in use at exit' "${files[@]}"
echo "valgrind: nothing of the library is left, and nothing is touched that must not be"
