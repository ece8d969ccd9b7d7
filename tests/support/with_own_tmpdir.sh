#!/bin/sh
# Runs a test with a folder for temporary files of its own, and removes it when the test has ended.
#
#   with_own_tmpdir.sh COMMAND [ARGUMENT]...
#
# Jobs that share a folder can take each other's sockets away while they end. Its name is short, as Open MPI puts sockets below
# it, whose paths may have 107 characters. A test that is killed for being late leaves its folder behind, to be looked at.
above=${TMPDIR:-/tmp}
[ "${#above}" -lt 24 ] || above=/tmp
TMPDIR=$(mktemp -d "$above/fsdp-XXXXXX") || exit
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$@"
