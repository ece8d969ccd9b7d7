#!/usr/bin/env bash
# fsdp-bench --floor, --async and --lanes, on two ranks as two nodes: right results, the lines that are printed, and the columns of CSV.
# Nothing is said of how fast anything was.
#
#   check_bench_network.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

program=$1
shift
export FSDP_NODE_SIZE=1

# bench OPTION...: its output goes into $folder/log
launch=("$@" "$program" --memory-rate 10G --link-rate 10G --repeat 1 --iterations 2 --csv "$folder/csv")
bench() {
    "${launch[@]}" "$@" >"$folder/log"
    cat "$folder/log"
}

says() {
    grep -qE -- "$1" "$folder/log" || fail "no line of the output matches '$1'"
}

# columns N LINE: the first line of the CSV file, and N more of as many columns
columns() {
    [[ $(head -n 1 "$folder/csv") == "$2" ]] || fail "the columns are $(head -n 1 "$folder/csv")"
    [[ $(wc -l <"$folder/csv") -eq $(($1 + 1)) ]] || fail "the CSV file has not $(($1 + 1)) lines"
    [[ $(sed 's/[^,]//g' "$folder/csv" | sort -u | wc -l) -eq 1 ]] || fail "rows of the CSV file differ in length"
}

number='[0-9.]+'

bench --floor --memory user --begin 12 --end 700K --factor 241
says '^# twin +none [(]only the plain sweep on host memory has one[)]: MPI at thread level single is not measured$'
says '^# allreduce against the floor, user memory, two ranks on two nodes$'
for size in '8 +1 +f32 +none' '8 +1 +f32 +sum' '12 +3 +f32 +sum' '2888 +361 +f32 +none' '696968 +87121 +f32 +sum' '716800 +89600 +f32 +sum'; do
    says "^ +$size [|] +$number +(inline|whole|[0-9]+K x [0-9]) [|] +$number +$number [|]( +$number){4} [|] +0  [a-z]+$"
done
says "^# least floor/ours +$number, (allgather|reduce_scatter|allreduce) of [0-9]+ bytes$"
says '^# good: floor/ours 0[.]90 or more, MPI/ours 1[.]00 or more;'
columns 12 "collective,memory,size_bytes,count,type,redop,floor_us,floor_best_us,floor_messages,floor_chunk_bytes,floor_depth,time_us,\
time_best_us,floor_ratio,mpi_time_us,mpi_time_best_us,mpi_again_us,mpi_again_best_us,ratio,mpi_mpi_ratio,iterations,wrong,algorithm"
[[ $(cut -d, -f1,2,22 "$folder/csv" | tail -n 12 | sort -u) == $'allgather,user,0\nallreduce,user,0\nreduce_scatter,user,0' ]] ||
    fail "the rows of the CSV file are not of user memory, or have wrong elements"

async="collective,size_bytes,type,redop,blocking_us,blocking_gb_s,alone_us,alone_gb_s,ratio,thread_cpu_us,\
thread_cpu_ns_per_byte,thread_core_share,compute,compute_us,total_us,total_over_sum,iterations,wrong,algorithm"
row="[|] +$number +$number [|] +$number +$number +$number [|] +$number +$number%"
bench --async --begin 12 --end 700K --factor 241
says '^# reduce_scatter by the progress thread alone$'
says "^ +696968 +f32 +sum $row [|] +0  [a-z]+$"
says '^# good: ratio 0[.]90 or more; of the medians of 1 blocks each$'
columns 12 "$async"
[[ $(cut -d, -f13-16,18 "$folder/csv" | tail -n 12 | sort -u) == none,,,,0 ]] || fail "the CSV file of --async has other rows"

bench --async --overlap-compute cpu --collective allreduce --begin 64K --end 64K
says '^# allreduce by the progress thread alone, and beside cpu compute on all ranks$'
says "^ +65536 +f32 +sum $row [|]( +$number){3} [|] +0  [a-z]+$"
says '^# good: ratio 0[.]90 or more, total/sum below 1[.]00;'
columns 1 "$async"
grep -qE "^allreduce,65536,f32,sum,.*,cpu,$number,$number,$number,2,0,[a-z]+$" "$folder/csv" || fail "the CSV file lacks the compute"

bench --lanes --begin 100 --end 4M --factor 100
says '^# an allreduce of one f32 while allgathers are under way, symmetric memory$'
for queued in 1 16; do
    says "^ +1000000 +$queued [|] +$number +[0-9]+( +($number|-)){3} [|]( +$number){3} [|] +0$"
done
columns 8 "size_bytes,queued,sum_alone_us,sums,sum_beside_us,sum_beside_p90_us,sum_beside_max_us,gather_alone_gb_s,\
gather_beside_gb_s,ratio,wrong"
[[ $(cut -d, -f2,11 "$folder/csv" | tail -n 8 | sort -u) == $'1,0\n16,0' ]] || fail "the CSV file of --lanes has other rows"
