#include "shard/schedule/shard_dot.h"

#include "shard/schedule/model_sum.h"
#include "shard/state/counted.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"

void fsdpi_shard_dot_add(fsdpi_flat *flat, const void *a, const void *b, fsdpi_exact_dot *dot)
{
    const size_t         width = fsdpi_master_width(flat->model);
    const unsigned char *x = a, *y = b;
    fsdpi_counted        run;

    for (size_t t = 0; fsdpi_counted_next(flat, &t, &run);) {
        fsdpi_compute_dot(flat->model, dot, x + run.at * width, y + run.at * width, run.count);
    }
}

fsdp_status fsdpi_shard_dots_join(fsdp_model *model, const char *function, fsdp_status status, size_t n,
                                  fsdpi_exact_dot *dots)
{
    return fsdpi_model_sum(model, function, "dot products over shards", status, true, dots, n * FSDPI_DOT_WORDS,
                           FSDP_I64, FSDP_SUM);
}
