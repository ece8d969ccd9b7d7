#!/usr/bin/env bash
# Bad input of fsdp-topo: one line that names the value and the remedy, exit status 2 on every rank, nothing on standard
# output, no hang. Alone and under mpiexec.
#
#   check_topo_options.sh PROGRAM FOLDER_OF_NODES MPIEXEC [FLAG]...
set -euo pipefail

program=$1 nodes=$2
shift 2
mpiexec=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
speaker='fsdp-topo: '

cat >"$folder/one_rank" <<'SCRIPT'
#!/usr/bin/env bash
"$@"
echo "status $?" >>"$STATUSES"
SCRIPT
chmod +x "$folder/one_rank"

# one WAY PATTERN RANKS COMMAND...
one() {
    local way=$1 pattern=$2 ranks=$3
    shift 3
    : >"$folder/statuses"
    STATUSES=$folder/statuses timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "$@" >"$folder/out" 2>"$folder/err" </dev/null || true
    local problem=''
    if [[ $(grep -c '^status 2$' "$folder/statuses") -ne $ranks ]]; then
        problem="not every rank ended with 2"
    elif [[ -s $folder/out ]]; then
        problem="output"
    elif [[ $(grep -c "^$speaker" "$folder/err") -ne 1 ]]; then
        problem="not one message"
    elif ! grep -Eq "^$speaker.*$pattern" "$folder/err"; then
        problem="no message that matches '$pattern'"
    fi
    [[ -n $problem ]] || return 0
    failures=$((failures + 1))
    echo "FAILED $way: $problem: ${*: -4}"
    cat "$folder/statuses" "$folder/out" "$folder/err"
}

# wrong PATTERN OPTION...; together PATTERN OPTION...: only with several ranks too where that is another way
wrong() {
    local pattern=$1
    shift
    one alone "$pattern" 1 "$folder/one_rank" "$program" "$@"
}
together() {
    local pattern=$1
    wrong "$@"
    shift
    one "under mpiexec" "$pattern" "${RANKS:-2}" "${mpiexec[@]}" "$folder/one_rank" "$program" "$@"
}

together "option '--gpus' is unknown; --help" --gpus 4
wrong "option '--gpus=4' is unknown or takes no value; --help" --gpus=4
wrong "option '-n' is unknown; --help" -n
wrong "argument 'node.xml' belongs to no option; --help" node.xml
wrong "--input needs a value; --help" --input
wrong "--input is empty; leave it out or give it a value" --input ''
together "--ranks is '0'; give a whole number from 1 to 4096" --ranks 0
wrong "--ranks is '-1'; give a whole number" --ranks -1
wrong "--ranks is '4097'; give a whole number" --ranks 4097
wrong "--ranks is '99999999999999999999'; give a whole number" --ranks 99999999999999999999
wrong "--ranks is 'all'; give a whole number" --ranks all
wrong "--masks has 'x'; give lists of hardware threads" --ranks 2 --masks 0/x
wrong "--masks has ''; give lists of hardware threads" --ranks 2 --masks 0/
wrong "--masks has 2 lists and --ranks is 3; give one list, or one per rank" --ranks 3 --masks 0/0
wrong "--masks has 3 lists and --ranks is 2; give one list, or one per rank" --ranks 2 --masks 0/0/0
wrong "--masks is for planned ranks; add --ranks" --masks 0
wrong "--reserve-first-core is for planned ranks; add --ranks" --reserve-first-core
wrong "--reserve-first-core and --masks both say what ranks may use; use one" --ranks 1 --masks 0 --reserve-first-core
wrong "--reserve is for planned ranks; add --ranks" --reserve 0
wrong "--reserve and --masks both say what ranks may use; use one" --ranks 1 --masks 0 --reserve 0
wrong "--reserve is 'x'; give a list of hardware threads" --ranks 1 --reserve x
wrong "--reserve has 3000-3001, and this machine has no such" --ranks 1 --reserve 0,3000-3001
wrong "--reserve leaves no core of this machine; reserve fewer" --ranks 1 --input "$nodes/laptop.xml" --reserve 0-3
wrong "--why is about the ranks of a node.*; use it without" --launch --why
wrong "--check is about the ranks of a node.*; use it without" --check --watch
wrong "--check shows what runs here, not a plan; leave out --ranks" --check --ranks 2
wrong "--check compares ranks that run with their plan; start it under mpirun" --check
wrong "--launch, --watch and --settings are runs of their own; use one" --launch --watch
wrong "--json and --svg describe nodes.*; use them without" --launch --json
wrong "--watch shows what runs here, not a plan; leave out --input" --watch --input "$nodes/laptop.xml"
wrong "--settings shows what runs here, not a plan; leave out --ranks" --settings --ranks 2
wrong "--wrapper is 'w.sh', which belongs to --launch; add that" --wrapper w.sh
wrong "--count belongs to --watch; add that" --count 3
wrong "--interval belongs to --watch; add that" --interval 2
wrong "--interval is 'nan'; give a number from 0.05 to 86400" --watch --interval nan
wrong "--interval is '0'; give a number from 0.05 to 86400" --watch --interval 0
wrong "--count is '1.5'; give a whole number" --watch --count 1.5
together "--svg is '$folder/none/node.svg', which cannot be written: No such file.*; name a file that can be" \
    --svg "$folder/none/node.svg"
together "--wrapper is '$folder', which cannot be written: Is a directory; name a file that can be" --launch --wrapper "$folder"
export FSDP_TOPOLOGY=$nodes/laptop.xml
wrong "--watch shows this machine, and FSDP_TOPOLOGY names another one's record; unset it" --watch
unset FSDP_TOPOLOGY

# What the library refuses.
speaker='libfsdp: error: '
echo '<topology version="2.0"><object' >"$folder/cut.xml"
echo 'PNG' >"$folder/picture.xml"
: >"$folder/empty.xml"
sed 's/<topology version="2.0">/<topology version="3.0">/' "$nodes/laptop.xml" >"$folder/three.xml"
together "$folder/missing.xml" --input "$folder/missing.xml"
together "$folder/cut.xml" --input "$folder/cut.xml" --ranks 2
wrong "$folder/picture.xml" --input "$folder/picture.xml"
wrong "$folder/empty.xml" --input "$folder/empty.xml"
wrong "$folder/three.xml.*version" --input "$folder/three.xml"
wrong "$folder" --input "$folder"
wrong "rank 1.*thread" --input "$nodes/laptop.xml" --ranks 2 --masks 0/4000

((failures == 0)) || {
    echo "$failures of the cases failed"
    exit 1
}
