#include "tests/shard/pipeline/spoiled.h"

#include <stdlib.h>
#include <string.h>

#include "shard/pipeline/generate.h"
#include "shard/pipeline/lower.h"

size_t draw(uint64_t *chance, size_t n)
{
    *chance = *chance * 6364136223846793005U + 1442695040888963407U;
    return (size_t)(*chance >> 33) % n;
}

fsdpi_schedule any_schedule(uint64_t *chance, int ranks)
{
    const fsdpi_pipeline_kind kind   = (fsdpi_pipeline_kind)draw(chance, FSDPI_N_PIPELINE_KINDS);
    const int                 each   = kind == FSDPI_INTERLEAVED ? 2 + (int)draw(chance, 2) : 1;
    const int                 micros = kind == FSDPI_INTERLEAVED ? 2 * ranks : 2 + (int)draw(chance, 5);
    fsdpi_schedule            schedule, lowered;
    fsdpi_passes              passes;
    fsdpi_flaw                flaw;

    if (!fsdpi_generate(&schedule, kind, ranks, each, micros, &flaw) || !fsdpi_passes_open(&passes, &schedule, &flaw) ||
        !fsdpi_lower(&passes, &lowered, &flaw)) {
        abort();
    }
    fsdpi_passes_close(&passes);
    fsdpi_schedule_close(&schedule);
    return lowered;
}

static void drop(fsdpi_actions *row, size_t at)
{
    memmove(row->list + at, row->list + at + 1, (row->n - at - 1) * sizeof *row->list);
    row->n--;
}

void spoil(uint64_t *chance, fsdpi_schedule *schedule)
{
    const int      rank = (int)draw(chance, (size_t)schedule->ranks);
    fsdpi_actions *row  = &schedule->rows[rank];
    const size_t   at = draw(chance, row->n), other = draw(chance, row->n), next = at + 1 < row->n ? at + 1 : at;
    const size_t   with = draw(chance, 2) == 0 ? other : next; /* what is far away is rarely good */
    fsdpi_action   kept = row->list[at];

    switch (draw(chance, 4)) {
    case 0:
        drop(row, at);
        break;
    case 1:
        if (!fsdpi_schedule_add(schedule, rank, kept)) {
            abort();
        }
        break;
    default:
        row->list[at]   = row->list[with];
        row->list[with] = kept;
        break;
    }
}
