#!/usr/bin/env bash
# The source tarball, the packages that are built from it, the module file, and the recipe for Spack.
#
#   test_packages.sh SETTINGS tarball | contents | dependencies | modulefile | spack
#
# SETTINGS is the file that settings.sh.in becomes; `contents` and `dependencies` look at what `tarball` has left. Exits with 77
# where a program is missing.
# shellcheck disable=SC2154 # the settings are assigned in SETTINGS
set -euo pipefail

# shellcheck source=/dev/null
. "$1"
tree="$work/fsdp-$version"

fail() {
    echo "$1"
    exit 1
}

need() {
    command -v "$1" >/dev/null || { echo "skipped: there is no $1"; exit 77; }
}

# The tarball builds without git, and into packages. Where git knows the sources, it holds these and nothing else.
build_from_tarball() {
    local archive="$work/fsdp-$version.tar.gz"
    need dpkg-shlibdeps
    need gfortran
    rm -rf "$tree" "$work"/*.deb "$work/_CPack_Packages"
    "$cpack" --config "$build/CPackSourceConfig.cmake" -B "$work" >/dev/null
    tar -xzf "$archive" -C "$work"
    [[ ! -e $tree/.git && ! -e $tree/build ]] || fail "the tarball holds more than sources"
    if git -C "$source" ls-files >"$work/tracked" 2>/dev/null; then
        (cd "$tree" && find . -type f -printf '%P\n') | sort >"$work/packed"
        sort "$work/tracked" | comm -23 - "$work/packed" | grep . && fail "these files are not in the tarball"
    fi
    cd "$tree"
    "$cmake" --preset deb "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" >/dev/null
    "$cmake" --build --preset deb --parallel 2 >/dev/null
    "$cpack" --preset deb >/dev/null
    mv build/deb/*.deb "$work"
}

# Sets `package` to the one of a name.
find_package_of() {
    package=$(echo "$work/${1}_$version"*.deb)
    [[ -e $package ]] || fail "there is no package '$1' among: $(cd "$work" && echo *.deb)"
}

# holds PACKAGE PATTERN...: each matches a file of it
expect_files() {
    local name=$1 files pattern
    find_package_of "$name"
    files=$(dpkg-deb --fsys-tarfile "$package" | tar -t)
    shift
    for pattern in "$@"; do
        grep -qE "^[.]/usr/$pattern\$" <<<"$files" || fail "$name has no file $pattern"
    done
    ! grep -qE "^[.]/(usr/local|tmp|root|home)" <<<"$files" || fail "$name has files outside /usr"
}

check_contents() {
    expect_files "libfsdp$soversion" "lib/.*/libfsdp[.]so[.]$soversion" "share/doc/libfsdp$soversion/copyright"
    expect_files libfsdp-dev 'include/fsdp/fsdp[.]h' 'lib/.*/libfsdp[.]so' 'lib/.*/pkgconfig/fsdp[.]pc' \
        'include/fsdp/fortran/fsdp[.]mod' 'lib/.*/libfsdp_fortran[.]a' 'lib/.*/pkgconfig/fsdp-fortran[.]pc' \
        'lib/.*/cmake/fsdp/fsdpConfig[.]cmake' 'share/doc/fsdp/docs/getting-started[.]md' \
        'share/doc/fsdp/examples/01_hello_collectives[.]c' 'share/doc/libfsdp-dev/copyright'
    expect_files fsdp-tools 'bin/fsdp-bench' 'bin/fsdp-ckpt' 'bin/fsdp-plan' 'bin/fsdp-run' 'bin/fsdp-top' 'bin/fsdp-topo' 'bin/fsdp-why' 'share/doc/fsdp-tools/copyright'
    mkdir -p "$work/root"
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work/root"
    done
    "$work/root/usr/bin/fsdp-ckpt" --help >/dev/null || fail "fsdp-ckpt does not run"
}

# field PACKAGE NAME: what the package says
field() {
    find_package_of "$1"
    dpkg-deb -f "$package" "$2"
}

check_dependencies() {
    local exactly="libfsdp$soversion (= $version)" name
    for name in libfsdp-dev fsdp-tools; do
        [[ $(field "$name" Depends) == *"$exactly"* ]] || fail "$name does not ask for $exactly"
    done
    [[ $(field libfsdp-dev Depends) == *"libopenmpi-dev"* ]] || fail "libfsdp-dev does not ask for MPI"
    for name in libc6 libhwloc libopenmpi; do
        [[ $(field "libfsdp$soversion" Depends) == *"$name"* ]] || fail "libfsdp$soversion does not ask for $name"
    done
    [[ $(field fsdp-tools Conflicts) == fsdp-tools-mpich ]] || fail "fsdp-tools can be installed for two MPIs at once"
    find_package_of "libfsdp$soversion"
    dpkg-deb --ctrl-tarfile "$package" | tar -xO ./shlibs | grep -qxF "libfsdp $soversion $exactly" ||
        fail "the package does not say what programs linked to it need"
}

# `module load` in a tree that has been moved.
load_module() {
    local prefix="$work/moved" modulecmd
    modulecmd=$(command -v modulecmd || command -v /usr/lib/*/modulecmd.tcl /usr/lib/modulecmd.tcl | head -n 1) ||
        { echo "skipped: there is no modulecmd; cmake/dependencies.sh packages installs environment-modules"; exit 77; }
    rm -rf "$prefix" "$work/there"
    "$cmake" --install "$build" --prefix "$work/there" >/dev/null
    mv "$work/there" "$prefix"
    unset LD_LIBRARY_PATH
    export MODULEPATH="$prefix/share/modulefiles" LOADEDMODULES='' _LMFILES_=''
    eval "$("$modulecmd" bash load fsdp)"
    [[ $(command -v fsdp-topo) == "$prefix/bin/fsdp-topo" ]] || fail "fsdp-topo is not found"
    [[ $(pkg-config --modversion fsdp) == "$version" ]] || fail "pkg-config does not find the module's fsdp.pc"
    [[ $CMAKE_PREFIX_PATH == "$prefix" && $LD_LIBRARY_PATH == "$prefix/lib"* ]] || fail "the paths are not those of $prefix"
    eval "$("$modulecmd" bash unload fsdp)"
    [[ -z ${LD_LIBRARY_PATH-} ]] || fail "unloading leaves LD_LIBRARY_PATH"
}

# Debian has no Spack: the recipe is Python, names this version, and defines only options that the build has.
check_recipe() {
    local recipe="$source/packaging/spack/packages/fsdp/package.py" option
    need python3
    python3 - "$recipe" <<'END'
import ast, sys
ast.parse(open(sys.argv[1], encoding="utf-8").read())
END
    grep -qF "version(\"$version\")" "$recipe" || fail "the recipe has no version $version"
    while read -r option; do
        grep -qE "^$option:" "$build/CMakeCache.txt" || fail "the build has no option $option"
    done < <(grep -oE '"(FSDP|BUILD)_[A-Z_]+"' "$recipe" | tr -d '"')
}

case $2 in
tarball) build_from_tarball ;;
contents) check_contents ;;
dependencies) check_dependencies ;;
modulefile) load_module ;;
spack) check_recipe ;;
*) fail "unknown part '$2'" ;;
esac
