#!/usr/bin/env bash
# The budget that 03_gpt prints for FULL_SHARD is 16 bytes for each parameter of the padded shard, plus views of
# three units: two of the largest and the third largest; and the library has allocated as much, to 1%.
#
#   check_gpt_budget.sh RANKS PROGRAM DATA MPIEXEC_AND_ITS_ARGUMENTS...
set -euo pipefail

ranks=$1 program=$2 data=$3
shift 3
layers=3 width=80 context=48

"$@" "$program" --data "$data" --layers $layers --heads 5 --width $width --context $context --batch $((2 * ranks)) \
    --steps 2 --val-batches 1 --sample 10 </dev/null | tee /dev/stderr |
    awk -v n="$ranks" -v layers=$layers -v c=$width -v t=$context '
        # elements per rank: a multiple of 256
        function shard(elements) { return int((elements + 256 * n - 1) / (256 * n)) * 256 }
        function expect(what, found, wanted) {
            if (found == wanted) return
            print what " is " found ", not " wanted; failed = 1
        }
        /^  master parameters / { master = $3 }
        /^  gradients / { gradients = $2 }
        /^  optimizer state / { optimizer = $3 }
        /^  gathered views / { gathered = $3 }
        /^  gradient views / { gradient_views = $3 }
        /^  staging buffers / { staging = $3 }
        /^  bookkeeping / { bookkeeping = $2 }
        /^  total / { total = $2 }
        /^  unsharded state / { unsharded = $3 }
        /^memory held / { held = $3; most = $7 + 0 }
        END {
            block = 12 * c * c + 13 * c
            embedding = (256 + t + 2) * c
            mine = shard(embedding) + layers * shard(block)
            largest = shard(block) > shard(embedding) ? shard(block) : shard(embedding)
            views = 4 * n * (2 * largest + shard(block)) # of three blocks and an embedding, a block is the third largest
            expect("16 bytes per parameter of the shard", master + gradients + optimizer, 16 * mine)
            expect("gathered views", gathered, views)
            expect("gradient views", gradient_views, views)
            expect("total", total, 16 * mine + gathered + gradient_views + staging + bookkeeping)
            expect("unsharded", unsharded, 16 * (layers * block + embedding))
            if (held < 0.99 * total || held > 1.01 * total || most < 0.99 * total || most > 1.01 * total) {
                print "held " held " and at most " most " bytes are not within 1% of the budget, " total
                failed = 1
            }
            exit failed
        }'
