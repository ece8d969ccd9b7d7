#!/usr/bin/env bash
# The files that fsdp-bench writes: JSON that a strict parser reads, CSV of equal rows, an SVG drawing.
#
#   check_bench_files.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

program=$1
shift

plot=()
if command -v gnuplot >/dev/null; then
    plot=(--plot "$folder/it's a plot.svg")
fi
"$@" "$program" --begin 64 --end 4K --factor 8 --repeat 1 --iterations 2 --no-twin --json "$folder/a.json" \
    --csv "$folder/a.csv" "${plot[@]}"

rows=9 # three sizes of three collectives
if command -v python3 >/dev/null; then
    python3 - "$folder/a.json" "$rows" "$("$@" "$program" --version)" <<'PYTHON'
import datetime, json, os, socket, sys
data = json.load(open(sys.argv[1]), parse_constant=lambda name: sys.exit(name + " is not JSON"))
assert len(data["results"]) == int(sys.argv[2]), data
assert all(row["wrong"] == 0 and row["time_us"] > 0 and row["twin_time_us"] is None for row in data["results"]), data
assert data["header"]["memory_copy_gb_s"] > 0, data
assert all(row["memory_bandwidth_gb_s"] >= row["memory_bandwidth_least_gb_s"] > 0 for row in data["results"]), data
assert len({row["memory_bandwidth_gb_s"] for row in data["results"]}) > 1, "the memory is measured once for all rows"
for row in data["results"]:
    assert 0 < row["time_best_us"] <= row["time_us"] <= row["time_worst_us"], row
    assert 0 < row["mpi_time_best_us"] <= row["mpi_time_us"] <= row["mpi_time_worst_us"], row
header = data["header"]
assert header["version"] == sys.argv[3].split()[-1] and header["host"] == socket.gethostname(), data
assert 1 <= header["cores"] <= os.cpu_count() and header["cpu"] and header["mpi"].split()[-1].strip("v")[0].isdigit(), data
began = datetime.datetime.strptime(header["date"], "%Y-%m-%dT%H:%M:%SZ")
assert abs(datetime.datetime.utcnow() - began) < datetime.timedelta(hours=1), data
average = sum(row["busbw_gb_s"] for row in data["results"]) / len(data["results"])
assert abs(data["summary"]["average_busbw_gb_s"] - average) <= 1e-9 * average and data["summary"]["wrong"] == 0, data
PYTHON
fi
[[ $(wc -l <"$folder/a.csv") -eq $((rows + 1)) ]] || fail "the CSV file has not $((rows + 1)) lines"
[[ $(sed 's/[^,]//g' "$folder/a.csv" | sort -u | wc -l) -eq 1 ]] || fail "rows of the CSV file differ in length"
grep -q '^collective,in_place,result,size_bytes,' "$folder/a.csv" || fail "the CSV file has no header line"
if ((${#plot[@]} > 0)); then
    grep -q '</svg>' "$folder/it's a plot.svg" || fail "the plot is no complete SVG file"
    for text in reduce_scatter 'time (us)' 'busbw (GB/s)' 'time of MPI / time of fsdp' '>bound<' "$(uname -n)" 'libfsdp '; do
        grep -qF -- "$text" "$folder/it's a plot.svg" || fail "the plot does not say '$text'"
    done
fi

"$@" "$program" --memory-rate 10G --step --units 2 --unit-params 100 --repeat 1 --iterations 1 --csv "$folder/step.csv" \
    --json "$folder/step.json"
[[ $(head -1 "$folder/step.csv") == units,unit_parameters,strategy,type,ranks,compute,compute_us,comm_us,step_us,* ]] ||
    fail "the CSV file of --step has other columns"
[[ $(sed -nE '2s/^2,100,FULL_SHARD,f32,[0-9]+,timed,.*,([0-9]*)$/\1/p' "$folder/step.csv") == 0 ]] ||
    fail "the CSV file of --step has another row, or wrong elements"
[[ $(wc -l <"$folder/step.csv") -eq 2 ]] || fail "the CSV file of --step has not 2 lines"
grep -q '"none_step_over_sum_best": [0-9.]*, "wrong": 0}' "$folder/step.json" || fail "the JSON file of --step lacks results"

"$@" "$program" --memory-rate 10G --checkpoint "$folder" --state-bytes 64K --units 2 --repeat 2 --json "$folder/saved.json"
grep -qE '"save_over_dd": [0-9.]+, .*"load_over_dd": [0-9.]+, .*"wrong": 0}' "$folder/saved.json" ||
    fail "the JSON file of --checkpoint lacks results"
[[ -z $(find "$folder" -name 'fsdp-bench-*') ]] || fail "--checkpoint has left its folder"
"$@" env PATH=/nowhere "$program" --memory-rate 10G --checkpoint "$folder" --state-bytes 64K --units 2 --repeat 2 >"$folder/log"
grep -qE '^  load +[0-9.]+ +dd failed [|] +- ' "$folder/log" || fail "--checkpoint without dd does not say so"

if "$@" env PATH=/nowhere "$program" --plot "$folder/b.svg" >"$folder/log" 2>&1; then
    fail "--plot without gnuplot was no error"
fi
grep -q 'fsdp-bench: --plot needs gnuplot' "$folder/log" || fail "--plot without gnuplot does not say so"

for option in json csv plot tune; do
    if "$@" "$program" "--$option=$folder/none/x" >"$folder/log" 2>&1; then
        fail "--$option into a folder that is not there was no error"
    fi
    grep -qE "fsdp-bench: --$option (is '.*/none/x', which cannot be written|needs gnuplot)" "$folder/log" ||
        fail "--$option into a folder that is not there does not say so"
done
