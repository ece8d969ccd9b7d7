#!/usr/bin/env bash
# fsdp-bench --drop-in: its jobs have the drop-in or have it not, the lines that are printed, and the columns of CSV. Nothing is
# said of how fast anything was.
#
#   check_bench_drop_in.sh LIBRARY PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

library=$1 program=$2
shift 2
launch=("$@" "$program" --memory-rate 10G --repeat 2 --iterations 3 --csv "$folder/csv")

says() {
    grep -qE -- "$1" "$folder/log" || fail "no line of the output matches '$1'"
}

number='[0-9.]+'

FSDP_MPI_REPORT="$folder/report" "${launch[@]}" --drop-in "$library" --begin 512 --end 1M --factor 2048 >"$folder/log" 2>"$folder/err"
cat "$folder/log"
says '^# allreduce, memory of malloc[(][)], out of place$'
for size in '512 +64 +f32 +none' '512 +64 +f32 +sum' '1048576 +262144 +f32 +sum'; do
    says "^ +$size [|] +$number +$number [|]( +$number){3} [|]( +$number){3} [|] +$number [|] +$number$"
done
says "^# a call that is not taken, .*: plain [0-9]+ ns, drop-in [0-9]+ ns, control [0-9]+ ns$"
says '^# medians of 2 rounds of three jobs at thread level single, by the slowest rank$'
[[ $(head -n 1 "$folder/csv") == "collective,size_bytes,count,dtype,op,iterations,plain_us,drop_in_us,ratio,ratio_least,ratio_most,\
control,control_least,control_most,bound_us" ]] || fail "the columns are $(head -n 1 "$folder/csv")"
[[ $(wc -l <"$folder/csv") -eq 7 ]] || fail "the CSV file has not 7 lines"
grep -qE '^reduce_scatter_block +<(1M|4M) +[0-9]+ +[0-9]+ +([1-9][0-9]*) +0 ' "$folder/report" ||
    { cat "$folder/report"; fail "the preloaded job's reductions were not taken"; }


"${launch[@]}" --drop-in "$library" --osu --collective reduce --begin 64 --end 64 >"$folder/log" 2>"$folder/err"
says '^# buffers +the same in every iteration'
says '^# reduce, memory of malloc[(][)], out of place, one call at a time as OSU'
says '; each call by itself: the mean of all ranks$'

if "${launch[@]}" --drop-in "$folder/nowhere.so" --begin 64 --end 64 >"$folder/log" 2>"$folder/err"; then
    fail "a drop-in that is not there is taken"
fi
grep -q "^fsdp-bench: --drop-in is '$folder/nowhere.so', which the ranks could not preload; give the path of" "$folder/err" ||
    fail "what is missing is not named"
