/*
 * An allreduce in symmetric memory behind compute: mpirun -n 4 overlap
 */
#include "listing.h"

static double compute(void)
{
    double sum = 0.0;

    for (int i = 1; i < 1000000; i++) {
        sum += 1.0 / i;
    }
    return sum;
}

/* begin overlap */
static int reduce_behind_compute(fsdp_context *ctx, int argc, char **argv)
{
    const size_t  n = 1U << 20;
    fsdp_request *request;
    void         *memory;
    float        *values;
    double        sum;

    (void)argc;
    (void)argv;
    TRY(fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, n * sizeof(float), &memory)); /* memory that peers read directly */
    values = memory;
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(fsdp_rank(ctx) + 1);
    }
    TRY(fsdp_iallreduce(ctx, FSDP_IN_PLACE, values, n, FSDP_F32, FSDP_SUM, &request)); /* returns at once */
    sum = compute(); /* `values` belong to the library until the wait */
    TRY(fsdp_wait(request));
    if (fsdp_rank(ctx) == 0) {
        printf("computed %.3f beside an allreduce by '%s'; every element is %.0f\n", sum, fsdp_last_algorithm(ctx),
               (double)values[n - 1]);
    }
    TRY(fsdp_buffer_free(ctx, memory));
    return EXIT_SUCCESS;
}
/* end overlap */

int main(int argc, char **argv)
{
    return listing_run(argc, argv, reduce_behind_compute);
}
