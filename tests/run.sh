#!/usr/bin/env bash
# Builds libfsdp and runs its tests. `tests/run.sh --help` says how.
set -euo pipefail

# shellcheck source=cmake/commands.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/commands.sh"

usage() {
    cat <<'END'
Usage: tests/run.sh [--quick | --full | --soak] [--preset NAME] [--time-factor N] [--no-install] [CTEST OPTION...]

Installs the packages that are missing (as root, or through sudo), builds, and runs the tests.

  --quick          the quick set: each collective, the engine, checkpoints, topology, examples and sources, in under two
                   minutes on two cores. This is what runs if nothing else is said
  --full           all tests of the preset but those of --soak
  --soak           only what takes hours together: most tests on other numbers of ranks than these, and those that are long by
                   themselves; nothing else runs them
  --preset NAME    how to build: default, debug, asan-ubsan, tsan, mpich, gpu-double or
                   hip; see CMakePresets.json
  --time-factor N  multiply every time limit, on a machine that is much slower or has much else to do
  --no-install     say which packages are missing instead of installing them, and fail if there are any
  --help           this text

Anything else goes to ctest, wherever it stands. Options that choose or list tests choose from --full, unless a set is named:
`-R allgather` runs those with that name, `-L kernels` those of a folder, `-N` lists all, `--quick -N` the quick ones,
`--rerun-failed` repeats what failed. Others leave the quick set as it is: `-V` shows all output, `-j 1` runs one test at a time.
END
}

# Whether one of ctest's options chooses or lists tests.
chooses() {
    local option
    for option in "$@"; do
        case $option in
        -[RELIN]* | --tests-regex* | --exclude-regex* | --label-* | --tests-information* | --show-only* | --rerun-failed) return 0 ;;
        esac
    done
    return 1
}

main() {
    local install=yes preset=default set='' factor=1 groups=(build demo test) build which rest=()
    while (($# > 0)); do
        case $1 in
        --help | -h)
            usage
            return
            ;;
        --no-install) install=no ;;
        --quick | --full | --soak) set=${1#--} ;;
        --preset | --time-factor)
            (($# > 1)) || { echo "$1 needs a value; see tests/run.sh --help" >&2; return 2; }
            if [[ $1 == --preset ]]; then preset=$2; else factor=$2; fi
            shift
            ;;
        --preset=*) preset=${1#--preset=} ;;
        --time-factor=*) factor=${1#--time-factor=} ;;
        *) rest+=("$1") ;;
        esac
        shift
    done
    [[ $factor =~ ^[1-9][0-9]*$ ]] || { echo "--time-factor is '$factor'; give a whole number from 1" >&2; return 2; }
    [[ $preset != mpich && $preset != hip ]] || groups+=("$preset")
    [[ $set != soak ]] || groups+=(soak)
    if [[ -z $set ]]; then
        set=quick
        ! chooses ${rest[@]+"${rest[@]}"} || set=full
    fi
    case $set in
    quick) which=(--label-regex '^quick$') ;;
    full) which=() ;;
    soak) which=(--build-config soak --label-regex '^soak$') ;;
    esac

    fsdp_require_packages "$install" "${groups[@]}"
    build=$preset
    [[ $preset != gpu-double ]] || build=default # other tests of the same programs
    fsdp_build "$build" "-DFSDP_TEST_TIME_FACTOR=$factor"
    fsdp_allow_root "$build"
    ctest --preset "$preset" --parallel "$(nproc)" ${which[@]+"${which[@]}"} ${rest[@]+"${rest[@]}"}
}

main "$@"
