# shellcheck shell=bash
# What runs with --exact print, held against each other: lines like "exact step 3 loss 0x1.4p+2 = 5.012345678901", and at last
# "exact parameters 0123456789abcdef". Sourced.

# keep_exact WHAT STEPS OUTPUT FILE: leaves these lines of a run's OUTPUT in FILE; ends the script if they are not all there.
keep_exact() {
    grep '^exact ' "$3" >"$4" || true
    if (($(grep -c '^exact step ' "$4") != $2)) || ! grep -q '^exact parameters [0-9a-f]\{16\}$' "$4"; then
        echo "$1: $2 losses and a hash were expected, not"
        cat "$3"
        exit 1
    fi
}

# same WHAT FILE FILE
same() {
    cmp -s "$2" "$3" && return
    echo "$1 differ:"
    diff "$2" "$3" || true
    exit 1
}

# near WHAT FILE FILE TOLERANCE: the losses of as many steps, relative to those of the first file
near() {
    paste <(grep '^exact step ' "$2") <(grep '^exact step ' "$3") |
        awk -v what="$1" -v steps="$(grep -c '^exact step ' "$2")" -v tolerance="$4" '
            { d = $14 / $7 - 1; if (d < 0) d = -d; if (d > most) most = d }
            END { printf "%s: losses differ by at most %.1e\n", what, most; exit !(NR == steps && most <= tolerance) }'
}
