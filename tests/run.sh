#!/usr/bin/env bash
# Builds libfsdp and runs its tests. `tests/run.sh --help` says how.
set -euo pipefail

# shellcheck source=cmake/commands.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/commands.sh"

usage() {
    cat <<'END'
Usage: tests/run.sh [--no-install] [--preset NAME] [CTEST OPTION...]

Installs the packages that are missing (as root, or through sudo), builds, and runs the tests.

  --no-install    say which packages are missing instead of installing them, and fail if there are any
  --preset NAME   how to build: default, debug, asan-ubsan, tsan, mpich, gpu-double or
                  hip; see CMakePresets.json
  --help          this text

Anything else goes to ctest: `-N` lists the tests, `-R allgather` runs those with that name, `-L kernels` those of a
folder, `-LE slow` leaves out the slow ones.
END
}

main() {
    local install=yes preset=default groups=(build demo test)
    while (($# > 0)); do
        case $1 in
        --help | -h)
            usage
            return
            ;;
        --no-install) install=no ;;
        --preset)
            (($# > 1)) || { echo "--preset needs a name; see tests/run.sh --help" >&2; return 2; }
            preset=$2
            shift
            ;;
        --preset=*) preset=${1#--preset=} ;;
        *) break ;;
        esac
        shift
    done
    [[ $preset != mpich && $preset != hip ]] || groups+=("$preset")

    fsdp_require_packages "$install" "${groups[@]}"
    fsdp_build "$preset"
    fsdp_allow_root "$preset"
    ctest --preset "$preset" --parallel "$(nproc)" "$@"
}

main "$@"
