#!/usr/bin/env bash
# Checks that includes go one way only: include <- kernels <- lib <- collectives <- shard <- checkpoint <- cli <- bench, tools, topo,
# mpi-examples.
#
#   check_includes.sh ROOT
#
# Prints each include against the direction as file:line and exits with 1 if there is one.
set -euo pipefail

root=$1

# The height of a path's top folder: a file may include what is not above it.
level() {
    case $1 in
    include/*) echo 0 ;;
    kernels/*) echo 1 ;;
    lib/*) echo 2 ;;
    collectives/*) echo 3 ;;
    shard/*) echo 4 ;;
    checkpoint/*) echo 5 ;;
    cli/*) echo 6 ;;
    bench/* | tools/* | topo/* | mpi-examples/*) echo 7 ;;
    tests/*) echo 8 ;;
    *) echo 9 ;;
    esac
}

# The path, from the root, of what `file` includes as `name`; empty if it is none of ours.
resolve() {
    local file=$1 name=$2 candidate
    for candidate in "$(dirname "$file")/$name" "$name" "include/$name"; do
        if [[ -e $root/$candidate ]]; then
            realpath --relative-to="$root" "$root/$candidate"
            return
        fi
    done
}

list_includes() {
    local folders=() folder
    for folder in include kernels lib collectives shard checkpoint cli bench tools topo mpi-examples; do
        [[ ! -d $root/$folder ]] || folders+=("$folder")
    done
    cd "$root"
    grep -rnE --include='*.[chS]' --include='*.cpp' --include='*.hip' --include='*.inc' \
        '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' "${folders[@]}"
}

wrong=0
while IFS=: read -r file line text; do
    name=$(sed -E 's/^[^<"]*[<"]([^>"]*)[>"].*/\1/' <<<"$text")
    target=$(resolve "$file" "$name")
    if [[ -z $target ]]; then
        if [[ $text == *'"'* ]]; then
            echo "$file:$line: \"$name\" is no file of this project; write <$name> if it is a system header"
            wrong=1
        fi
    elif (($(level "$target") > $(level "$file"))); then
        echo "$file:$line: ${file%%/*} may not include $target"
        wrong=1
    elif [[ ${target%%/*} != "${file%%/*}" && $(level "$target") -eq $(level "$file") ]]; then
        echo "$file:$line: ${file%%/*} and ${target%%/*} stand side by side and may not include each other"
        wrong=1
    fi
done < <(list_includes)
exit "$wrong"
