# shellcheck shell=bash
# Sourced by scripts that check programs:
#
#   . "$(dirname "$0")/../support/check.sh"
#
#   $folder        of the script's own, removed at its end
#   fail WORDS...  says what is wrong, shows what programs have left in out, err and log of that folder, and ends with 1
#   skip REASON    ends with the status that CTest takes for a skipped test
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "${0##*/}: $*"
    cat "$folder"/{out,err,log} 2>/dev/null || true
    exit 1
}

skip() {
    echo "${0##*/}: skipped: $*"
    exit 77
}
