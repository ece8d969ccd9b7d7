#include "shard/checkpoint/write/sort_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

/* A row that has come: its number, and the place in which it came. */
typedef struct arrival {
    int64_t id;
    size_t  place;
} arrival;

/* Lists of a number per rank. ROWS, but for what alltoallv is given, which is BYTES. */
enum { TO, FROM, BYTES_TO, BEGIN_TO, BYTES_FROM, BEGIN_FROM, N_LISTS };

typedef struct move {
    fsdp_context  *ctx;
    fsdpi_keyed   *keyed;
    const char    *function;
    size_t         ranks;
    uint64_t       all;   /* rows of all ranks */
    int64_t        least; /* of all numbers */
    uint64_t       share; /* numbers of a rank */
    size_t         n_from;
    size_t         widest; /* BYTES of a row in the widest column */
    size_t        *lists;  /* N_LISTS of them */
    size_t        *order;  /* this rank's rows, those for rank 0 first */
    unsigned char *sent, *received;
    arrival       *arrivals;
} move;

static size_t *list(const move *m, int which)
{
    return m->lists + (size_t)which * m->ranks;
}

static fsdp_status agree(const move *m, const char *label, fsdp_status status)
{
    return fsdpi_agree(m->ctx, m->function, label, 0, status, true);
}

/* ---- which rank writes a row ---------------------------------------------------------------------------------------- */

static size_t rank_of(const move *m, int64_t id)
{
    return (size_t)(((uint64_t)id - (uint64_t)m->least) / m->share);
}

static fsdp_status check_given(const move *m)
{
    const fsdpi_keyed *k = m->keyed;

    return k->is_set ? FSDP_OK
                     : fsdpi_fail_together(m->ctx, FSDP_ERR_STATE,
                                           "%s: rank %d has not said which rows of '%.200s' it has; call "
                                           "fsdp_checkpoint_set_rows before each save",
                                           m->function, m->ctx->rank, k->name);
}

/* ~x falls as x rises, and never overflows. */
static fsdp_status find_range(move *m)
{
    int64_t n = (int64_t)m->keyed->n_given, ends[2] = {INT64_MIN, INT64_MIN};

    for (size_t i = 0; i < m->keyed->n_given; i++) {
        const int64_t id = m->keyed->ids[i];

        ends[0] = ~id > ends[0] ? ~id : ends[0];
        ends[1] = id > ends[1] ? id : ends[1];
    }
    FSDP_TRY(fsdp_allreduce(m->ctx, FSDP_IN_PLACE, &n, 1, FSDP_I64, FSDP_SUM));
    FSDP_TRY(fsdp_allreduce(m->ctx, FSDP_IN_PLACE, ends, 2, FSDP_I64, FSDP_MAX));
    m->all   = (uint64_t)n;
    m->least = ~ends[0];
    m->share = n > 0 ? ((uint64_t)ends[1] - (uint64_t)m->least) / m->ranks + 1 : 1;
    return FSDP_OK;
}

/* ---- who sends what to whom ------------------------------------------------------------------------------------------ */

static size_t list_bytes(const move *m)
{
    return N_LISTS * m->ranks * sizeof(size_t);
}

static size_t order_bytes(const move *m)
{
    return m->keyed->n_given * sizeof(size_t);
}

static bool allocate_lists(move *m)
{
    m->lists = fsdpi_alloc(m->ctx, FSDP_MEMORY_STAGING, list_bytes(m));
    m->order = fsdpi_alloc(m->ctx, FSDP_MEMORY_STAGING, order_bytes(m));
    return m->lists != NULL && (m->order != NULL || order_bytes(m) == 0);
}

/* Rows for one rank stay in the order in which the program has them. */
static void put_in_order(const move *m)
{
    const int64_t *ids = m->keyed->ids;
    size_t        *to = list(m, TO), *next = list(m, BEGIN_TO), n = 0;

    for (size_t i = 0; i < m->keyed->n_given; i++) {
        to[rank_of(m, ids[i])]++;
    }
    for (size_t r = 0; r < m->ranks; r++) {
        next[r] = n;
        n += to[r];
    }
    for (size_t i = 0; i < m->keyed->n_given; i++) {
        m->order[next[rank_of(m, ids[i])]++] = i;
    }
}

static fsdp_status tell_counts(move *m)
{
    FSDP_TRY(fsdp_alltoall(m->ctx, list(m, TO), list(m, FROM), 1, FSDP_I64));
    for (size_t r = 0; r < m->ranks; r++) {
        m->n_from += list(m, FROM)[r];
    }
    return FSDP_OK;
}

/* ---- the rows --------------------------------------------------------------------------------------------------------- */

static bool allocate_rows(move *m)
{
    for (size_t i = 0; i < m->keyed->n; i++) {
        const size_t width = fsdpi_keyed_width(m->keyed->columns[i]);

        m->widest = width > m->widest ? width : m->widest;
    }
    m->sent     = fsdpi_alloc(m->ctx, FSDP_MEMORY_STAGING, m->keyed->n_given * m->widest);
    m->received = fsdpi_alloc(m->ctx, FSDP_MEMORY_STAGING, m->n_from * m->widest);
    m->arrivals = fsdpi_alloc(m->ctx, FSDP_MEMORY_STAGING, m->n_from * sizeof *m->arrivals);
    return (m->sent != NULL || m->keyed->n_given == 0) &&
           (m->n_from == 0 || (m->received != NULL && m->arrivals != NULL)) &&
           fsdpi_keyed_allocate(m->ctx, m->keyed, m->n_from) == FSDP_OK;
}

/* BYTES, one rank's behind the other's. */
static void place_blocks(const size_t *rows, size_t ranks, size_t width, size_t *bytes, size_t *begin)
{
    size_t at = 0;

    for (size_t r = 0; r < ranks; r++) {
        bytes[r] = rows[r] * width;
        begin[r] = at;
        at += bytes[r];
    }
}

static fsdp_status move_column(const move *m, const void *given, size_t width)
{
    for (size_t i = 0; i < m->keyed->n_given; i++) {
        memcpy(m->sent + i * width, (const unsigned char *)given + m->order[i] * width, width);
    }
    place_blocks(list(m, TO), m->ranks, width, list(m, BYTES_TO), list(m, BEGIN_TO));
    place_blocks(list(m, FROM), m->ranks, width, list(m, BYTES_FROM), list(m, BEGIN_FROM));
    return fsdp_alltoallv(m->ctx, m->sent, list(m, BYTES_TO), list(m, BEGIN_TO), m->received, list(m, BYTES_FROM),
                          list(m, BEGIN_FROM), FSDP_U8);
}

static int by_id(const void *a, const void *b)
{
    const int64_t x = ((const arrival *)a)->id, y = ((const arrival *)b)->id;

    return x < y ? -1 : x > y;
}

static fsdp_status check_ids(const move *m)
{
    for (size_t i = 1; i < m->n_from; i++) {
        if (m->arrivals[i].id == m->arrivals[i - 1].id) {
            return fsdpi_fail_together(m->ctx, FSDP_ERR_ARG,
                                       "%s: two rows of '%.200s' have the number %" PRId64 "; give each its own",
                                       m->function, m->keyed->name, m->arrivals[i].id);
        }
    }
    return FSDP_OK;
}

static fsdp_status sort_ids(const move *m)
{
    FSDP_TRY(move_column(m, m->keyed->ids, sizeof(int64_t)));
    for (size_t i = 0; i < m->n_from; i++) {
        m->arrivals[i] = (arrival){((const int64_t *)(const void *)m->received)[i], i};
    }
    if (m->n_from > 1) {
        qsort(m->arrivals, m->n_from, sizeof *m->arrivals, by_id);
    }
    return agree(m, "numbers of rows", check_ids(m));
}

static void keep_in_order(const move *m, const fsdpi_array *column)
{
    const size_t width = fsdpi_keyed_width(column);

    for (size_t i = 0; i < m->n_from; i++) {
        memcpy(column->memory + i * width, m->received + m->arrivals[i].place * width, width);
    }
}

static fsdp_status move_rows(const move *m)
{
    FSDP_TRY(sort_ids(m));
    keep_in_order(m, m->keyed->columns[0]);
    for (size_t i = 1; i < m->keyed->n; i++) {
        const fsdpi_array *column = m->keyed->columns[i];
        const void        *given  = m->keyed->n_given > 0 ? m->keyed->given[i - 1] : NULL;

        FSDP_TRY(move_column(m, given, fsdpi_keyed_width(column)));
        keep_in_order(m, column);
    }
    return FSDP_OK;
}

/* Behind those of all ranks before this one. */
static fsdp_status place(const move *m)
{
    size_t  *counts = list(m, FROM);
    uint64_t first  = 0;

    counts[m->ctx->rank] = m->n_from;
    FSDP_TRY(fsdp_allgather(m->ctx, FSDP_IN_PLACE, counts, 1, FSDP_I64));
    for (int r = 0; r < m->ctx->rank; r++) {
        first += counts[r];
    }
    fsdpi_keyed_place(m->keyed, first, m->all);
    return FSDP_OK;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------- */

static fsdp_status no_memory(const move *m)
{
    return fsdpi_fail_together(m->ctx, FSDP_ERR_MEMORY, "%s: no memory to move the rows of '%.200s'", m->function,
                               m->keyed->name);
}

static fsdp_status run(move *m)
{
    FSDP_TRY(agree(m, "rows", check_given(m)));
    FSDP_TRY(find_range(m));
    FSDP_TRY(agree(m, "lists of rows", allocate_lists(m) ? FSDP_OK : no_memory(m)));
    put_in_order(m);
    FSDP_TRY(tell_counts(m));
    FSDP_TRY(agree(m, "memory of rows", allocate_rows(m) ? FSDP_OK : no_memory(m)));
    FSDP_TRY(move_rows(m));
    return place(m);
}

fsdp_status fsdpi_rows_sort(fsdp_context *ctx, fsdpi_keyed *keyed, const char *function)
{
    move              m      = {.ctx = ctx, .keyed = keyed, .function = function, .ranks = (size_t)ctx->size};
    const fsdp_status status = run(&m);

    fsdpi_free(ctx, FSDP_MEMORY_STAGING, m.arrivals, m.n_from * sizeof *m.arrivals);
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, m.received, m.n_from * m.widest);
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, m.sent, keyed->n_given * m.widest);
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, m.order, order_bytes(&m));
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, m.lists, list_bytes(&m));
    keyed->is_set = false;
    if (status != FSDP_OK) {
        fsdpi_keyed_release(ctx, keyed);
        fsdpi_keyed_place(keyed, 0, 0);
    }
    return status;
}
