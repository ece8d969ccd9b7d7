#!/usr/bin/env bash
# A job that calls the module without a status ends with a failure, and says why.
#
#   check_fails.sh COMMAND...
set -euo pipefail

if output=$("$@" 2>&1); then
    echo "succeeded: $*"
    exit 1
fi
echo "$output"
grep -qE '^fsdp_model_commit: FSDP_ERR_ARG: .+' <<<"$output" || { echo "the text is missing"; exit 1; }
! grep -qF "not reached" <<<"$output" || { echo "the program went on"; exit 1; }
