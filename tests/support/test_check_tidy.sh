#!/usr/bin/env bash
# Shows that check_tidy.sh looks at a source again when something changes that its result depends on, and only then. A script
# stands for clang-tidy: it finds the word "flaw" in the source and in the header.
set -euo pipefail

check=$(CDPATH='' cd "$(dirname "$0")" && pwd)/check_tidy.sh
scratch=$(realpath "$(mktemp -d)")
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
export XDG_CACHE_HOME=$scratch/cache

mkdir -p "$tree"/{bin,build,include}
cat >"$tree/bin/clang-tidy" <<'TIDY'
#!/usr/bin/env bash
here=$(dirname "$(dirname "$0")")
if [[ $1 == --version ]]; then
    cat "$here/version"
else
    [[ $1 != --quiet ]] || shift
    echo "$1" >>"$here/looked_at"
    ! grep -H flaw "$1" "$here/include/h.h"
fi
TIDY
chmod +x "$tree/bin/clang-tidy"
PATH=$tree/bin:$PATH
echo 1 >"$tree/version"
echo 'Checks: "*"' >"$tree/.clang-tidy"
echo 'extern int h;' >"$tree/include/h.h"
printf '#include "h.h"\nint a(void) { return h; }\n' >"$tree/a.c"
echo 'int b(void) { return 1; }' >"$tree/b.c"

commands() { # FLAGS OF a.c
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=$tree" >"$tree/build/CMakeCache.txt"
    cat >"$tree/build/compile_commands.json" <<JSON
[
{
  "directory": "$tree/build",
  "command": "/usr/bin/cc $1 -I$tree/include -o a.o -c $tree/a.c",
  "file": "$tree/a.c"
},
{
  "directory": "$tree/build",
  "command": "/usr/bin/cc $1 -I$tree/include -fPIC -o again/a.o -c $tree/a.c",
  "file": "$tree/a.c"
},
{
  "directory": "$tree/build",
  "command": "/usr/bin/cc -o b.o -c $tree/b.c",
  "file": "$tree/b.c"
}
]
JSON
}

fail() {
    echo "test_check_tidy.sh: $1"
    exit 1
}

# looks good|bad SOURCES WHY [--deep] [SOURCE...]: so ends the check, and it looks at these
looks() {
    local result=good options=() expected="$1 and '$2'" because=$3 looked
    : >"$tree/looked_at"
    shift 3
    if [[ ${1-} == --deep ]]; then
        options=(--deep)
        shift
    fi
    "$check" ${options[@]+"${options[@]}"} "$tree/build" "$@" >"$tree/log" 2>&1 || result=bad
    looked=$(sed 's#.*/##' "$tree/looked_at" | sort | paste -sd ' ')
    [[ "$result and '$looked'" == "$expected" ]] ||
        fail "$because: $result, looked at '$looked', not $expected: $(cat "$tree/log")"
}

commands -O2
looks good "a.c b.c" "the first time"
looks good "" "nothing has changed"
echo '/* flaw */' >>"$tree/include/h.h"
looks bad "a.c" "a header has changed"
looks bad "a.c" "what was bad is looked at again"
echo 'extern int h;' >"$tree/include/h.h"
looks good "" "the header is what it was"
echo '/* more */' >>"$tree/b.c"
looks good "b.c" "a source has changed"
commands "-O2 -DA=\\\"x\\\""
looks good "a.c" "a flag has changed"
commands "-O3 -DA=\\\"x\\\""
looks good "" "a flag that does not matter has changed"
echo 'Checks: "-*"' >"$tree/.clang-tidy"
looks good "a.c b.c" "the settings have changed"
echo 2 >"$tree/version"
looks good "b.c" "another clang-tidy, one source asked for" "$tree/b.c"
looks good "a.c" "the other source"
looks good "a.c b.c" "more paths" --deep
looks good "" "fewer paths again"
mv "$tree" "$scratch/moved"
tree=$scratch/moved PATH=$scratch/moved/bin:$PATH
commands "-O2 -DA=\\\"x\\\""
looks good "" "the same sources in another place"
echo "every change was noticed"
