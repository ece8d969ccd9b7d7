#!/usr/bin/env bash
# Shows that check_includes.sh finds what it is there to find, on trees made for it.
set -euo pipefail

check=$(CDPATH='' cd "$(dirname "$0")" && pwd)/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

make_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{include/fsdp,kernels/host,lib,shard,cli,bench,mpi-examples/03_gpt}
    echo '#include <stdio.h>' >"$tree/include/fsdp/a.h"
    printf '#include "half.h"\n#include "fsdp/a.h"\n' >"$tree/kernels/host/k.c"
    echo '#include <stddef.h>' >"$tree/kernels/host/half.h"
    echo '  #  include  "kernels/host/half.h"' >"$tree/lib/l.h"
    echo '#include "lib/l.h"' >"$tree/shard/s.h"
    echo '#include <stddef.h>' >"$tree/cli/c.h"
    printf '#include "shard/s.h"\n#include "cli/c.h"\n' >"$tree/bench/b.h"
    echo '#include "fsdp/a.h"' >"$tree/mpi-examples/03_gpt/m.c"
}

accepts() {
    "$check" "$tree" || { echo "a good tree was refused"; exit 1; }
}

# refuses FILE TEXT EXPECTED: with TEXT appended to FILE the check fails and says EXPECTED
refuses() {
    make_tree
    echo "$2" >>"$tree/$1"
    local output
    if output=$("$check" "$tree"); then
        echo "not found: $2 in $1"
        exit 1
    fi
    grep -qF -- "$3" <<<"$output" || { echo "wrong message: $output"; exit 1; }
}

make_tree
accepts
refuses include/fsdp/a.h '#include "kernels/host/half.h"' 'include/fsdp/a.h:2: include may not include kernels/'
refuses kernels/host/half.h '# include "../../lib/l.h"' 'kernels may not include lib/l.h'
refuses lib/l.h '#include <shard/s.h>' 'lib may not include shard/s.h'
refuses shard/s.h '#include "bench/b.h"' 'shard may not include bench/b.h'
refuses cli/c.h '#include "bench/b.h"' 'cli may not include bench/b.h'
refuses mpi-examples/03_gpt/m.c '#include "bench/b.h"' 'may not include each other'
refuses lib/l.h '#include "stdlib.h"' 'is no file of this project'
echo "all wrong trees were refused"
