#!/usr/bin/env bash
# Runs clang-tidy, as .clang-tidy says, on all sources of a build. A source that it found nothing in is not looked at again until
# the source, a file that it includes, its flags, .clang-tidy or clang-tidy itself changes.
#
#   check_tidy.sh [--deep] BUILD_FOLDER [SOURCE...]
#
# --deep: the analyzer follows six times as many paths through each function, which takes three times as long.
#
# BUILD_FOLDER holds compile_commands.json. ${XDG_CACHE_HOME:-~/.cache}/fsdp-tidy holds an empty file for each good state of a source;
# all checkouts share it. Exits with 77 if there is no clang-tidy.
set -euo pipefail

# ---- one source: what xargs runs ------------------------------------------------------------------------------------------

# The flags of a compiler's command that matter to clang-tidy, in `flags`; what GCC alone knows is left out.
flags_of() {
    local words word i
    eval "words=($1)"
    flags=()
    for ((i = 1; i < ${#words[@]}; i++)); do
        word=${words[i]}
        case $word in
        -o) ((++i)) ;;
        -c | -fPIC | -fPIE | -g | -O* | -W* | -flto* | -ffat-lto-objects | -fno-thread-jumps | -mmemset-strategy=*) ;;
        -*) flags+=("$word") ;;
        *) # the value of the option before, the source, or a compiler behind ccache
            case ${words[i - 1]} in
            -isystem | -include | -I | -D | -U | -x) flags+=("$word") ;;
            esac
            ;;
        esac
    done
}

# The settings for a source: the .clang-tidy files above it, of which each may add to the next.
settings_of() {
    local folder=$1
    while [[ $folder == */* && $folder != / ]]; do
        folder=${folder%/*}
        if [[ -f $folder/.clang-tidy ]]; then
            echo "$folder/.clang-tidy"
        fi
    done
}

# Prints what the result of a source depends on, as a hash. Every file that it includes counts as a whole: comments, which
# preprocessed text lacks, may tell clang-tidy what to leave alone.
state_of() {
    local source=$1 compiler=cc depends
    [[ $source != *.cpp ]] || compiler=c++
    depends=$("$compiler" "${flags[@]}" -M -MT x "$source") || return
    # -I and -isystem are left out: which files they find is in the list
    {
        printf '%s\n' "$CHECK_TIDY_VERSION" "$CHECK_TIDY_NODES" "$source"
        printf '%s\n' "${flags[@]}" | grep -vE '^-(I|isystem)' || true
        # shellcheck disable=SC2046 # a list of paths without blanks
        sha256sum $(settings_of "$source") $(sed 's/^x://; s/\\$//' <<<"$depends")
    } | sed "s#$CHECK_TIDY_TREE/##g" | sha256sum | cut -c1-40
}

# one FOLDER SOURCE COMMAND
one() {
    local state
    cd "$1"
    flags_of "$3"
    state=$CHECK_TIDY_GOOD/$(state_of "$2")
    if [[ -e $state ]]; then
        touch "$state"
        echo same >>"$CHECK_TIDY_COUNT"
        return
    fi
    echo run >>"$CHECK_TIDY_COUNT"
    local output
    flags+=(-Xclang -analyzer-config -Xclang "max-nodes=$CHECK_TIDY_NODES")
    if output=$(clang-tidy --quiet "$2" -- "${flags[@]}" 2>&1); then
        : >"$state"
    else
        printf '%s\n' "$output"
        return 1
    fi
}

if [[ ${1-} == --one ]]; then
    one "${@:2}"
    exit
fi

# ---- all sources ----------------------------------------------------------------------------------------------------------

CHECK_TIDY_NODES=37500 # the analyzer's own choice is 225000
if [[ $1 == --deep ]]; then
    CHECK_TIDY_NODES=225000
    shift
fi
build=$1
shift
if ! command -v clang-tidy >/dev/null; then
    echo "skipped: no clang-tidy"
    exit 77
fi

# compile_commands.json as lines of size, folder, source and command, without the repetitions of several targets.
commands() {
    local folder='' source='' command='' name value wanted=" $* "
    while IFS=$'\t' read -r name value; do
        case $name in
        directory) folder=$value ;;
        command) command=$value ;;
        file)
            [[ $wanted == "  " || $wanted == *" $value "* ]] || continue
            source=$value
            # the same flags give the same object, whatever it is called
            command=${command// -fPI[CE]/}
            printf '%s\t%s\t%s\t%s\n' "$(stat -c %s "$source")" "$folder" "$source" "${command%% -o *} -c $source"
            ;;
        esac
    done < <(sed -nE 's/^ *"(directory|command|file)": "(.*)",?$/\1\t\2/p' "$build/compile_commands.json" |
        sed 's/\\"/"/g; s/\\\\/\\/g')
}

CHECK_TIDY_GOOD=${XDG_CACHE_HOME:-${HOME:-$(realpath "$build")}/.cache}/fsdp-tidy
mkdir -p "$CHECK_TIDY_GOOD"
find "$CHECK_TIDY_GOOD" -type f -mtime +30 -delete
# Where the sources are does not matter.
CHECK_TIDY_TREE=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
CHECK_TIDY_VERSION=$(clang-tidy --version)
CHECK_TIDY_COUNT=$scratch/count
export CHECK_TIDY_NODES CHECK_TIDY_GOOD CHECK_TIDY_TREE CHECK_TIDY_VERSION CHECK_TIDY_COUNT
: >"$CHECK_TIDY_COUNT"

# The largest first, so that none is left alone on one core at the end.
status=0
commands "$(realpath -s "$@" 2>/dev/null | tr '\n' ' ' | sed 's/ $//')" | sort -t$'\t' -u -k3,4 | sort -rn | cut -f2- | tr '\t\n' '\0\0' |
    xargs -0 -r -n 3 -P "$(env -u OMP_NUM_THREADS nproc)" "${BASH_SOURCE[0]}" --one || status=1
echo "clang-tidy: $(grep -c run "$CHECK_TIDY_COUNT" || true) looked at, $(grep -c same "$CHECK_TIDY_COUNT" || true) as they were"
exit "$status"
