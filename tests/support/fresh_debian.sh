#!/usr/bin/env bash
# Builds and tests this checkout in a Debian that is made from nothing. `tests/support/fresh_debian.sh --help` says how.
set -euo pipefail

readonly skipped=77 # the exit status that CTest takes for a skipped test

usage() {
    cat <<'END'
Usage: tests/support/fresh_debian.sh [--release NAME] [--root FOLDER] [--keep] [--no-demo | --packages] [OPTION OF tests/run.sh...]

Makes a Debian with debootstrap, from the mirror that this machine's apt uses, clones the checkout into it (what is
committed, not what is changed since), and runs mpi-examples/demo.sh and tests/run.sh there as a new user would.

  --release NAME  bookworm: Debian 12, with Open MPI 4.1, GCC 12 and hwloc 2.9; or trixie, the default: Debian 13, with
                  Open MPI 5.0, GCC 14 and hwloc 2.12
  --root FOLDER   where to make it; it must not exist, or be empty, or be one that --keep has left. Default: a temporary one
  --keep          leave the folder for the next run, and print its name
  --no-demo       run tests/run.sh only
  --packages      build Debian's packages there instead, install them in a second Debian that has nothing else, and use them
                  from C, C++ and Fortran
  --help          this text

Anything else goes to tests/run.sh: `-R bench.twin` runs those tests, `-N` only builds. FSDP_DEBIAN_MIRROR names another
mirror. Exits with 77 and a reason where root, debootstrap or the mirror is missing.
END
}

skip() {
    echo "skipped: $1"
    exit "$skipped"
}

# The first Debian mirror among apt's sources, from either of its formats.
find_mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        sed -nE -e 's#^deb +(\[[^]]*\] +)?([a-z]+://[^ ]+/debian)/? .*#\2#p' \
            -e 's#^URIs: *([a-z]+://[^ ]+/debian)/?( .*)?$#\1#p' | sed -n 1p || true # not all of these files exist
}

# Sets `keyring` to the keys that sign the release.
find_keyring() {
    for keyring in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
        [[ ! -r $keyring ]] || return 0
    done
    return 1
}

# require: what the machine must have, before anything is made.
require() {
    ((EUID == 0)) || skip "only root can make and enter a root folder"
    command -v debootstrap >/dev/null || skip "no debootstrap; cmake/dependencies.sh soak installs it"
    [[ -e /usr/share/debootstrap/scripts/$release ]] || skip "this debootstrap does not know '$release'"
    command -v git >/dev/null || skip "no git to clone the checkout with"
    find_keyring || skip "no debian-archive-keyring to check the packages with"
    mirror=${FSDP_DEBIAN_MIRROR:-$(find_mirror)}
    [[ -n $mirror ]] || skip "apt's sources name no Debian mirror"
    unshare --mount true 2>/dev/null || skip "this machine lets nobody mount, not even root"
}

# What the folder holds must be a root of ours, or nothing: it is removed at the end.
prepare_folder() {
    if [[ -z $root ]]; then
        root=$(mktemp -d "${TMPDIR:-/var/tmp}/fsdp-debian.XXXXXX")
    elif [[ -e $root && $(cat "$root/.fsdp-debian" 2>/dev/null) != "$release" && -n $(ls -A "$root") ]]; then
        echo "fresh_debian.sh: '$root' holds something else; name an empty folder" >&2
        exit 2
    fi
    mkdir -p "$root"
    root=$(CDPATH='' cd "$root" && pwd)
    [[ $root != *[[:space:]]* ]] || { echo "fresh_debian.sh: debootstrap takes no folder with a space: '$root'" >&2; exit 2; }
    chmod 755 "$root"
    made=yes
}

clean_up() {
    trap - EXIT INT TERM HUP
    if [[ -n $child ]]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    [[ -z $second ]] || root=${second%.second}
    if [[ $made == yes && $keep != yes ]]; then
        [[ -z $second ]] || rm -rf --one-file-system "$second"
        rm -rf --one-file-system "$root" 2>/dev/null || { sleep 1 && rm -rf --one-file-system "$root"; } # its last processes ended just now
    fi
}

# The lists are fetched first: a mirror that is away is a reason to skip, a package that fails to install is not.
bootstrap() {
    [[ ! -e $root/.fsdp-debian ]] || return 0
    local log=$root.log
    if ! debootstrap --variant=minbase --keyring="$keyring" --print-debs "$release" "$root" "$mirror" >"$log" 2>&1; then
        tail -n 5 "$log"
        rm -f "$log"
        skip "debootstrap gets no $release from $mirror"
    fi
    if ! debootstrap --variant=minbase --keyring="$keyring" "$release" "$root" "$mirror" >"$log" 2>&1; then
        tail -n 20 "$log"
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    echo "$release" >"$root/.fsdp-debian"
}

# inside COMMAND...: runs the command in the root, with the mounts of a running system. They and all processes live in
# namespaces, and end with them however this ends; unshare itself heeds no signal but KILL.
inside() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -euc '
        root=$1
        shift
        mount --bind "$root" "$root" # "ip netns exec" wants the top to be a mount
        cd "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/dev/shm"
        mount -t tmpfs tmpfs "$root/tmp"
        exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 CI="${CI-}" TERM="${TERM-dumb}" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' inside "$root" "$@" &
    child=$!
    local status=0
    wait "$child" || status=$?
    child=
    return "$status"
}

clone() {
    local source
    source=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
    rm -rf "$root/root/libfsdp"
    git -c safe.directory='*' clone --quiet --no-hardlinks "$source" "$root/root/libfsdp"
    local file
    for file in /etc/resolv.conf /etc/hosts; do
        [[ ! -e $file ]] || cp --dereference "$file" "$root$file"
    done
}

# Builds the packages where everything to build them is, and uses them where nothing is but they and compilers.
use_packages() {
    local builder=$root
    second=$root.second
    cp -a "$root" "$second"
    clone
    inside bash -c 'cd /root/libfsdp && exec packaging/deb.sh' </dev/null
    root=$second
    clone
    cp "$builder"/root/libfsdp/build/deb/*.deb "$root/root"
    inside bash -euc '
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q update
        apt-get -q install -y --no-install-recommends /root/*.deb gcc g++ gfortran cmake make pkg-config openmpi-bin
        exec /root/libfsdp/tests/packaging/consume.sh /root/libfsdp' </dev/null
}

main() {
    release=trixie root='' keep=no packages=no demo=yes made=no second='' child='' mirror='' keyring=''
    while (($# > 0)); do
        case $1 in
        --help | -h)
            usage
            return
            ;;
        --release | --root)
            (($# > 1)) || { echo "$1 needs a value; see tests/support/fresh_debian.sh --help" >&2; return 2; }
            if [[ $1 == --root ]]; then root=$2; else release=$2; fi
            shift
            ;;
        --keep) keep=yes ;;
        --no-demo) demo=no ;;
        --packages) packages=yes ;;
        *) break ;;
        esac
        shift
    done

    [[ $packages == no || $keep == no ]] || { echo "--packages begins anew each time; leave --keep out" >&2; return 2; }
    require
    trap clean_up EXIT
    trap 'exit 143' INT TERM HUP
    prepare_folder
    bootstrap
    if [[ $packages == yes ]]; then
        use_packages
        return
    fi
    clone
    if [[ $demo == yes ]]; then
        inside bash -c 'cd /root/libfsdp && exec ./mpi-examples/demo.sh' </dev/null
    fi
    inside bash -c 'cd /root/libfsdp && exec ./tests/run.sh "$@"' run.sh "$@" </dev/null
    [[ $keep != yes ]] || echo "kept: $root"
}

main "$@"
