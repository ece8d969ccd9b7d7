#!/usr/bin/env bash
# Shows that with_own_tmpdir.sh gives each test a folder with a short name, passes its status on and removes the folder.
set -euo pipefail

launcher=$(CDPATH='' cd "$(dirname "$0")" && pwd)/with_own_tmpdir.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "test_with_own_tmpdir.sh: $1"
    exit 1
}

# runs STATUS TMPDIR: a test that leaves files behind and ends with STATUS
runs() {
    local status=0 own
    # shellcheck disable=SC2016 # expanded by the test
    TMPDIR=$2 "$launcher" sh -c 'echo "$TMPDIR" >"$1"; mkdir -p "$TMPDIR/a/b" && echo c >"$TMPDIR/a/b/c"; exit "$2"' \
        sh "$folder/name" "$1" || status=$?
    own=$(<"$folder/name")
    [[ $status -eq $1 ]] || fail "status $status, not $1"
    [[ -n $own && ${#own} -lt 40 ]] || fail "the folder is '$own'"
    [[ ! -e $own ]] || fail "$own is still there"
}

mkdir -p "$folder/a-folder-with-quite-a-long-name"
for status in 0 1 77; do
    runs "$status" /tmp
    runs "$status" "$folder/a-folder-with-quite-a-long-name"
done

"$launcher" sleep 1000 &
waiting=$!
until pgrep -P "$waiting" -x sleep >/dev/null; do
    kill -0 "$waiting" || fail "the launcher ended by itself"
done
own=$(tr '\0' '\n' <"/proc/$(pgrep -P "$waiting" -x sleep)/environ" | sed -n 's/^TMPDIR=//p')
kill -TERM "$waiting" "$(pgrep -P "$waiting" -x sleep)" # as a terminal or timeout(1) does: all of them
! wait "$waiting" || fail "a launcher that is told to end says that all is well"
[[ -n $own && ! -e $own ]] || fail "'$own' is still there after SIGTERM"
echo "every folder was short and has gone"
