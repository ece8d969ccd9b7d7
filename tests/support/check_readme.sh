#!/usr/bin/env bash
# The README's table of settings is that of include/fsdp/config.h, and the presets that it names exist.
#
#   check_readme.sh SOURCE_FOLDER
set -euo pipefail

cd "$1"
failed=0

complain() {
    echo "README.md: $1"
    failed=1
}

settings=$(sed -nE 's/^ *X\([a-z_]+, [A-Z]+, "(FSDP_[A-Z_]+)", "([^"]*)".*/\1 \2/p' include/fsdp/config.h)
[[ -n $settings ]] || complain "no settings found in include/fsdp/config.h"
while read -r variable fallback; do
    # shellcheck disable=SC2016 # the backquotes are the README's
    grep -qF "| \`$variable\` | $fallback |" README.md || complain "no row for $variable with its default, $fallback"
done <<<"$settings"
# shellcheck disable=SC2016
rows=$(grep -cE '^\| `FSDP_' README.md)
[[ $rows == $(wc -l <<<"$settings") ]] || complain "$rows rows of settings, but there are $(wc -l <<<"$settings")"

for preset in $(sed -nE 's/^Presets: (.*)\. `.*/\1/p' README.md | tr -d '`,'); do
    grep -qF "\"name\": \"$preset\", \"configurePreset\"" CMakePresets.json || complain "there is no preset '$preset'"
done
exit "$failed"
