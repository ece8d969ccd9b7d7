#include "md_atoms.h"

#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

fsdp_status md_atoms_add(fsdp_checkpoint *checkpoint)
{
    static const fsdp_column columns[] = {{"x", FSDP_F64, 3}, {"v", FSDP_F64, 3}};

    return fsdp_checkpoint_add_rows(checkpoint, "atoms", 2, columns);
}

fsdp_status md_atoms_set(fsdp_context *ctx, fsdp_checkpoint *checkpoint, const md_frame *frame, md_rows *rows)
{
    int64_t *grown = realloc(rows->ids, (frame->own + 1) * sizeof *grown);
    size_t   i;

    *rows = (md_rows){grown ? grown : rows->ids, {frame->x, frame->v}};
    EXAMPLE_TRY(example_agree(ctx, grown ? "" : "no memory for the tags of a rank's atoms; use more ranks"));
    for (i = 0; grown && i < frame->own; i++) {
        grown[i] = frame->tags[i];
    }
    return fsdp_checkpoint_set_rows(checkpoint, "atoms", frame->own, grown, rows->columns);
}

/* A load divides rows evenly, in the order of their numbers: whether these are the tags of so many atoms. */
static int fit(const int64_t *ids, size_t n, size_t first, size_t end)
{
    size_t i;

    if (first + n != end) {
        return 0;
    }
    for (i = 0; i < n; i++) {
        if (ids[i] != (int64_t)(first + i + 1)) {
            return 0;
        }
    }
    return 1;
}

fsdp_status md_atoms_get(fsdp_context *ctx, const fsdp_checkpoint *checkpoint, size_t atoms, double *all)
{
    const size_t   rank = (size_t)fsdp_rank(ctx), ranks = (size_t)fsdp_size(ctx);
    const size_t   first = atoms * rank / ranks, end = atoms * (rank + 1) / ranks;
    const int64_t *ids;
    const void    *rows[2];
    size_t         n, i;
    int            good;

    EXAMPLE_TRY(fsdp_checkpoint_get_rows(checkpoint, "atoms", &n, &ids, rows));
    good = fit(ids, n, first, end);
    EXAMPLE_TRY(
        example_agree(ctx, good ? "" : "the checkpoint has other atoms; use the --cells that it was saved with"));
    memset(all, 0, 6 * atoms * sizeof *all);
    for (i = 0; i < 2 && n; i++) {
        memcpy(all + 3 * (i * atoms + first), rows[i], 3 * n * sizeof *all);
    }
    /* The bits of one rank and zeros of the others. */
    return fsdp_allreduce(ctx, FSDP_IN_PLACE, all, 6 * atoms, FSDP_I64, FSDP_SUM);
}
