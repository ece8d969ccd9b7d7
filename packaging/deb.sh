#!/usr/bin/env bash
# Builds Debian's packages of libfsdp and the source tarball. `packaging/deb.sh --help` says how.
set -euo pipefail

# shellcheck source=cmake/commands.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/commands.sh"

usage() {
    cat <<'END'
Usage: packaging/deb.sh [--mpi openmpi|mpich] [--no-install]

Installs what is missing (as root, or through sudo), builds, and leaves the packages libfsdp0.1, libfsdp-dev and fsdp-tools for
this Debian and one MPI, and the source tarball, in build/deb. `apt install ./build/deb/*.deb` installs them.

  --mpi NAME    the MPI they are for: openmpi, the default, or mpich, whose packages have its name in theirs
  --no-install  say which packages are missing instead of installing them, and fail if there are any
  --help        this text
END
}

main() {
    local install=yes mpi=openmpi groups=(build packages)
    while (($# > 0)); do
        case $1 in
        --help | -h)
            usage
            return
            ;;
        --no-install) install=no ;;
        --mpi)
            (($# > 1)) || { echo "--mpi needs a value; see packaging/deb.sh --help" >&2; return 2; }
            mpi=$2
            shift
            ;;
        *)
            echo "packaging/deb.sh does not know '$1'; see packaging/deb.sh --help" >&2
            return 2
            ;;
        esac
        shift
    done
    [[ $mpi == openmpi || $mpi == mpich ]] || { echo "--mpi is '$mpi'; it is openmpi or mpich" >&2; return 2; }
    [[ $mpi != mpich ]] || groups+=(mpich)

    fsdp_require_packages "$install" "${groups[@]}"
    rm -f "$fsdp_source"/build/deb/*.deb "$fsdp_source"/build/deb/*.tar.gz # of another version or MPI
    fsdp_build deb "-DFSDP_MPI=$mpi"
    cpack --preset deb
    cpack --preset source
    printf 'built: %s\n' "$fsdp_source"/build/deb/*.{deb,tar.gz}
}

main "$@"
