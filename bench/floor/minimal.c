#include "bench/floor/minimal.h"

#include <sched.h>
#include <string.h>

#include "bench/floor/stream.h"

/* The one pass, in rank order. */
static void reduce(const bench_pair *pair, void *out, const void *own, const void *others, size_t count)
{
    const void *const operands[2] = {pair->rank == 0 ? own : others, pair->rank == 0 ? others : own};

    pair->kernels->reduce(out, operands, 2, count, FSDP_F32, FSDP_SUM, 2);
}

static bench_stream sending(const bench_pair *pair, const bench_plan *plan, int tag, const void *from, size_t bytes)
{
    return (bench_stream){.comm  = pair->comm,
                          .peer  = pair->peer,
                          .tag   = tag,
                          .from  = from,
                          .bytes = bytes,
                          .chunk = plan->chunk,
                          .depth = plan->depth};
}

static bench_stream receiving(const bench_pair *pair, const bench_plan *plan, int tag, void *to, size_t bytes)
{
    return (bench_stream){.comm  = pair->comm,
                          .peer  = pair->peer,
                          .tag   = tag,
                          .to    = to,
                          .bytes = bytes,
                          .chunk = plan->chunk,
                          .depth = plan->depth};
}

/* What is to be reduced, into room for as many chunks as may be under way. */
static bench_stream receiving_partials(const bench_pair *pair, const bench_plan *plan, size_t bytes)
{
    bench_stream partials = receiving(pair, plan, BENCH_TAG_DATA, pair->room, bytes);

    partials.slots = plan->depth;
    return partials;
}

static void count_look(int moved, unsigned *in_vain)
{
    *in_vain = moved ? 0 : *in_vain + 1;
    if (*in_vain > BENCH_SPINS) {
        (void)sched_yield();
    }
}

/* Reduces the oldest chunk, if it has come. @return whether it has */
static int reduce_arrival(const bench_pair *pair, bench_stream *partials, const char *own, char *out)
{
    const size_t number = partials->done, begin = bench_stream_begin(partials, number);

    if (!bench_stream_look(partials)) {
        return 0;
    }
    reduce(pair, out + begin, own + begin, bench_stream_place(partials, number),
           bench_stream_length(partials, number) / sizeof(float));
    return 1;
}

/* This rank's own part is copied chunk by chunk, as the other's come. */
static void allgather(const bench_pair *pair, const bench_plan *plan, const char *in, char *out, size_t bytes)
{
    char        *own    = out + (size_t)pair->rank * bytes;
    bench_stream send   = sending(pair, plan, BENCH_TAG_DATA, in, bytes);
    bench_stream take   = receiving(pair, plan, BENCH_TAG_DATA, out + (size_t)pair->peer * bytes, bytes);
    const size_t chunks = bench_stream_chunks(&send);
    size_t       copied = 0;
    unsigned     vain   = 0;

    while (!bench_stream_over(&send) || !bench_stream_over(&take) || copied < chunks) {
        bench_stream_post(&take, chunks);
        bench_stream_post(&send, chunks);
        if (copied < chunks && copied <= take.done) {
            const size_t begin = bench_stream_begin(&send, copied);

            pair->kernels->copy(own + begin, in + begin, bench_stream_length(&send, copied));
            copied++;
        }
        count_look(bench_stream_look(&take) | bench_stream_look(&send), &vain);
    }
}

static void reduce_scatter(const bench_pair *pair, const bench_plan *plan, const char *in, char *out, size_t bytes)
{
    const char  *own    = in + (size_t)pair->rank * bytes;
    bench_stream send   = sending(pair, plan, BENCH_TAG_DATA, in + (size_t)pair->peer * bytes, bytes);
    bench_stream take   = receiving_partials(pair, plan, bytes);
    const size_t chunks = bench_stream_chunks(&send);
    unsigned     vain   = 0;

    while (!bench_stream_over(&send) || !bench_stream_over(&take)) {
        bench_stream_post(&take, chunks);
        bench_stream_post(&send, chunks);
        count_look(reduce_arrival(pair, &take, own, out) | bench_stream_look(&send), &vain);
    }
}

/* Both ranks reduce everything: the fewest messages. */
static void allreduce_whole(const bench_pair *pair, const bench_plan *plan, const char *in, char *out, size_t bytes)
{
    bench_stream send = sending(pair, plan, BENCH_TAG_DATA, in, bytes);
    bench_stream take = receiving_partials(pair, plan, bytes);
    unsigned     vain = 0;

    bench_stream_post(&take, 1);
    bench_stream_post(&send, 1);
    while (!bench_stream_over(&send) || !bench_stream_over(&take)) {
        count_look(reduce_arrival(pair, &take, in, out) | bench_stream_look(&send), &vain);
    }
}

/* Each rank reduces its half, and sends a chunk of it as soon as it is final: the fewest bytes. */
static void allreduce_halves(const bench_pair *pair, const bench_plan *plan, const char *in, char *out, size_t count)
{
    const size_t first = count / 2 * sizeof(float), all = count * sizeof(float);
    const size_t own = pair->rank == 0 ? 0 : first, own_bytes = pair->rank == 0 ? first : all - first;
    const size_t others = first - own, others_bytes = all - own_bytes;
    bench_stream send     = sending(pair, plan, BENCH_TAG_DATA, in + others, others_bytes);
    bench_stream take     = receiving_partials(pair, plan, own_bytes);
    bench_stream hand_out = sending(pair, plan, BENCH_TAG_RESULT, out + own, own_bytes);
    bench_stream collect  = receiving(pair, plan, BENCH_TAG_RESULT, out + others, others_bytes);
    unsigned     vain     = 0;

    while (!bench_stream_over(&send) || !bench_stream_over(&hand_out) || !bench_stream_over(&collect)) {
        bench_stream_post(&take, bench_stream_chunks(&take));
        bench_stream_post(&collect, bench_stream_chunks(&collect));
        bench_stream_post(&send, bench_stream_chunks(&send));
        bench_stream_post(&hand_out, take.done);
        count_look(reduce_arrival(pair, &take, in + own, out + own) | bench_stream_look(&send) |
                       bench_stream_look(&hand_out) | bench_stream_look(&collect),
                   &vain);
    }
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */

static fsdp_status run_inline(bench_pair *pair, const bench_case *c, const char *in, char *out)
{
    const size_t bytes = c->count * sizeof(float), own = (size_t)pair->rank * bytes,
                 others = (size_t)pair->peer * bytes;
    const char *data    = bench_letter_exchange(pair, c->collective == BENCH_REDUCE_SCATTER ? in + others : in, bytes);

    if (c->collective == BENCH_ALLGATHER) {
        memcpy(out + own, in, bytes);
        memcpy(out + others, data, bytes);
    } else {
        reduce(pair, out, c->collective == BENCH_REDUCE_SCATTER ? in + own : in, data, c->count);
    }
    return bench_letter_compare(pair);
}

fsdp_status bench_minimal_run(bench_pair *pair, const bench_plan *plan, const bench_case *c, const void *in, void *out)
{
    const size_t bytes = c->count * sizeof(float);

    bench_letter_write(pair, c);
    if (plan->form == BENCH_FORM_INLINE) {
        return run_inline(pair, c, in, out);
    }
    bench_letter_post(pair);
    if (c->collective == BENCH_ALLGATHER) {
        allgather(pair, plan, in, out, bytes);
    } else if (c->collective == BENCH_REDUCE_SCATTER) {
        reduce_scatter(pair, plan, in, out, bytes);
    } else if (plan->form == BENCH_FORM_WHOLE) {
        allreduce_whole(pair, plan, in, out, bytes);
    } else {
        allreduce_halves(pair, plan, in, out, c->count);
    }
    bench_letter_end(pair);
    return bench_letter_compare(pair);
}
