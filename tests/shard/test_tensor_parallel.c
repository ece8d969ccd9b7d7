/*
 * Layers divided over ranks: what begins and ends a region, words and their loss against a serial reference, and the gradients of a
 * network that uses all of it against finite differences, in f64.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "tests/support/mpi_test.h"

enum { MOST_RANKS = 8 };

/* Some number between -1 and 1. */
static double draw(size_t i)
{
    return (double)((i + 3) * 7919 % 10007) / 5003.5 - 1.0;
}

static void ok(fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
}

/* ---- parts -------------------------------------------------------------------------------------------------------- */

static void parts_follow_each_other_and_differ_by_one_at_most(void **state)
{
    fsdp_context *ctx = *state;

    for (uint64_t n = 0; n < 40; n++) {
        size_t   begin, count;
        uint64_t mine[2], all[2 * MOST_RANKS], next = 0;

        assert_int_equal(FSDP_OK, fsdp_tp_part(ctx, n, &begin, &count));
        mine[0] = begin;
        mine[1] = count;
        assert_int_equal(FSDP_OK, fsdp_allgather(ctx, mine, all, 2, FSDP_I64));
        for (int r = 0; r < fsdp_size(ctx); r++) {
            assert_int_equal(next, all[2 * r]);
            assert_in_range(all[2 * r + 1], n / (uint64_t)fsdp_size(ctx), n / (uint64_t)fsdp_size(ctx) + 1);
            next += all[2 * r + 1];
        }
        assert_int_equal(n, next);
    }
}

/* ---- regions ------------------------------------------------------------------------------------------------------ */

static fsdp_context *casting; /* what fsdp_cast() wants to be called with */

/* Small whole numbers are exact in every type. */
static void put(void *memory, size_t i, double value, fsdp_dtype dtype)
{
    const float narrow = (float)value;

    if (dtype == FSDP_F64) {
        ((double *)memory)[i] = value;
    } else {
        ok(fsdp_cast(casting, (char *)memory + i * fsdp_dtype_size(dtype), dtype, &narrow, FSDP_F32, 1));
    }
}

static double get(const void *memory, size_t i, fsdp_dtype dtype)
{
    float narrow;

    if (dtype == FSDP_F64) {
        return ((const double *)memory)[i];
    }
    ok(fsdp_cast(casting, &narrow, FSDP_F32, (const char *)memory + i * fsdp_dtype_size(dtype), dtype, 1));
    return (double)narrow;
}

static fsdp_status go(fsdp_context *ctx, const fsdp_tp_activations *a, const void *in, void *out, bool ends, bool waits)
{
    fsdp_request *request;

    if (!waits) {
        return (ends ? fsdp_tp_end : fsdp_tp_begin)(ctx, a, in, out);
    }
    const fsdp_status status = (ends ? fsdp_tp_iend : fsdp_tp_ibegin)(ctx, a, in, out, &request);
    assert_int_equal(FSDP_OK, status);
    assert_true(ends || a->outside == FSDP_TP_OWN_ROWS || request == NULL);
    return fsdp_wait(request);
}

static void check_region(fsdp_context *ctx, const fsdp_tp_activations *a, bool waits)
{
    const size_t ranks = (size_t)fsdp_size(ctx), rank = (size_t)fsdp_rank(ctx), all = a->rows * a->width;
    const size_t own     = a->outside == FSDP_TP_OWN_ROWS ? all / ranks : all;
    const size_t first   = a->outside == FSDP_TP_OWN_ROWS ? own * rank : 0;
    void        *outside = calloc(all + 1, 8), *whole = calloc(all + 1, 8);

    assert_true(outside != NULL && whole != NULL);
    for (size_t i = 0; i < own; i++) {
        put(outside, i, (double)((first + i) % 31), a->dtype);
    }
    assert_int_equal(FSDP_OK, go(ctx, a, outside, whole, false, waits));
    for (size_t i = 0; i < all; i++) {
        assert_true(get(whole, i, a->dtype) == (double)(i % 31));
        put(whole, i, (double)((i + rank) % 5), a->dtype);
    }
    assert_int_equal(FSDP_OK, go(ctx, a, whole, outside, true, waits));
    for (size_t i = 0; i < own; i++) {
        double sum = 0.0;

        for (size_t r = 0; r < ranks; r++) {
            sum += (double)((first + i + r) % 5);
        }
        assert_true(get(outside, i, a->dtype) == sum);
    }
    free(whole);
    free(outside);
}

static void regions_begin_with_all_rows_and_end_with_sums(void **state)
{
    static const fsdp_dtype dtypes[] = {FSDP_F32, FSDP_F64, FSDP_BF16, FSDP_F16};
    fsdp_context           *ctx      = *state;

    casting = ctx;
    for (size_t d = 0; d < 4; d++) {
        for (size_t rows = 0; rows < 4; rows++) {
            for (int waits = 0; waits < 2; waits++) {
                const fsdp_tp_activations all = {rows, 7, dtypes[d], FSDP_TP_ALL_ROWS};
                const fsdp_tp_activations own = {rows * (size_t)fsdp_size(ctx), 7, dtypes[d], FSDP_TP_OWN_ROWS};

                check_region(ctx, &all, waits);
                check_region(ctx, &own, waits);
            }
        }
    }
}

static void regions_work_in_place(void **state)
{
    fsdp_context             *ctx   = *state;
    const size_t              ranks = (size_t)fsdp_size(ctx), rank = (size_t)fsdp_rank(ctx), width = 3;
    float                     x[3 * MOST_RANKS];
    const fsdp_tp_activations all = {ranks, width, FSDP_F32, FSDP_TP_ALL_ROWS},
                              own = {ranks, width, FSDP_F32, FSDP_TP_OWN_ROWS};

    for (size_t i = 0; i < width; i++) {
        x[rank * width + i] = (float)rank;
    }
    assert_int_equal(FSDP_OK, fsdp_tp_begin(ctx, &own, x + rank * width, x));
    for (size_t i = 0; i < ranks * width; i++) {
        const size_t row = i / width;

        assert_true(x[i] == (float)row);
    }
    assert_int_equal(FSDP_OK, fsdp_tp_begin(ctx, &all, x, x));
    assert_int_equal(FSDP_OK, fsdp_tp_end(ctx, &all, x, x));
    for (size_t i = 0; i < ranks * width; i++) {
        const size_t row = i / width;

        assert_true(x[i] == (float)(ranks * row));
    }
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

enum { ROWS = 12, WIDTH = 5, VOCABULARY = 11, HIDDEN = 8 }; /* 12 rows: of 1, 2, 3 ranks; 5 and 8 ranks pad */

static int32_t word(size_t row)
{
    return (int32_t)(row * row % VOCABULARY);
}

static void words_are_found_wherever_they_are(void **state)
{
    fsdp_context             *ctx = *state;
    int32_t                   words[ROWS];
    float                     table[VOCABULARY * WIDTH], out[ROWS * WIDTH], d_table[VOCABULARY * WIDTH] = {0};
    size_t                    begin, count;
    const fsdp_tp_activations a = {ROWS, WIDTH, FSDP_F32, FSDP_TP_ALL_ROWS};

    assert_int_equal(FSDP_OK, fsdp_tp_part(ctx, VOCABULARY, &begin, &count));
    for (size_t i = 0; i < ROWS; i++) {
        words[i] = word(i);
    }
    for (size_t i = 0; i < count * WIDTH; i++) {
        table[i] = (float)draw(begin * WIDTH + i);
    }
    assert_int_equal(FSDP_OK, fsdp_tp_embed(ctx, &a, words, VOCABULARY, table, out));
    assert_int_equal(FSDP_OK, fsdp_tp_end(ctx, &a, out, out));
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        assert_true(out[i] == (float)draw((size_t)words[i / WIDTH] * WIDTH + i % WIDTH));
        out[i] = (float)i;
    }
    assert_int_equal(FSDP_OK, fsdp_tp_embed_backward(ctx, &a, words, VOCABULARY, out, d_table));
    for (size_t k = 0; k < count * WIDTH; k++) {
        float sum = 0.0F;

        for (size_t i = 0; i < ROWS; i++) {
            sum += (size_t)words[i] == begin + k / WIDTH ? (float)(i * WIDTH + k % WIDTH) : 0.0F;
        }
        assert_true(d_table[k] == sum);
    }
}

/* The loss of a row and its gradient, computed in one piece. */
static double serial_loss(const double *row, int32_t target, double scale, double *gradient)
{
    double most = row[0], sum = 0.0;

    for (size_t v = 1; v < VOCABULARY; v++) {
        most = row[v] > most ? row[v] : most;
    }
    for (size_t v = 0; v < VOCABULARY; v++) {
        sum += exp(row[v] - most);
    }
    for (size_t v = 0; v < VOCABULARY; v++) {
        gradient[v] = target < 0 ? 0.0 : scale * (exp(row[v] - most) / sum - ((size_t)target == v ? 1.0 : 0.0));
    }
    return target < 0 ? 0.0 : log(sum) - (row[target] - most);
}

static void check_entropy(fsdp_context *ctx, fsdp_dtype dtype, double spread, double tolerance)
{
    const double scale = 1.0 / 7.0;
    int32_t      targets[ROWS];
    char         logits[ROWS * VOCABULARY * sizeof(double)];
    double       losses[ROWS], gradient[VOCABULARY], row[VOCABULARY];
    size_t       begin, count;

    assert_int_equal(FSDP_OK, fsdp_tp_part(ctx, VOCABULARY, &begin, &count));
    for (size_t i = 0; i < ROWS; i++) {
        targets[i] = i % 5 == 4 ? FSDP_TP_NO_TARGET : word(i);
        for (size_t k = 0; k < count; k++) {
            put(logits, i * count + k, (double)(float)(spread * draw(i * VOCABULARY + begin + k)), dtype);
        }
    }
    assert_int_equal(FSDP_OK, fsdp_tp_cross_entropy(ctx, ROWS, VOCABULARY, dtype, targets, scale, logits, losses));
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t v = 0; v < VOCABULARY; v++) {
            row[v] = (double)(float)(spread * draw(i * VOCABULARY + v));
        }
        assert_true(fabs(losses[i] - serial_loss(row, targets[i], scale, gradient)) <=
                    tolerance * (1.0 + fabs(losses[i])));
        for (size_t k = 0; k < count; k++) {
            assert_true(fabs(get(logits, i * count + k, dtype) - gradient[begin + k]) <= tolerance);
        }
    }
    /* all ranks have the same bits */
    double least[ROWS], most[ROWS];
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, losses, least, ROWS, FSDP_F64, FSDP_MIN));
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, losses, most, ROWS, FSDP_F64, FSDP_MAX));
    assert_memory_equal(least, most, sizeof least);
    assert_memory_equal(least, losses, sizeof least);
}

static void the_loss_is_that_of_whole_logits(void **state)
{
    const double spreads[] = {0.0, 1.0, 30.0, 3000.0};

    casting = *state;
    for (size_t i = 0; i < 4; i++) {
        check_entropy(*state, FSDP_F64, spreads[i], 1e-13);
        check_entropy(*state, FSDP_F32, spreads[i], 1e-6);
    }
}

static void what_is_not_finite_shows_in_its_row_alone(void **state)
{
    fsdp_context *ctx = *state;
    float         logits[2 * VOCABULARY];
    double        losses[2];
    size_t        begin, count;

    assert_int_equal(FSDP_OK, fsdp_tp_part(ctx, VOCABULARY, &begin, &count));
    for (size_t i = 0; i < 2 * count; i++) {
        logits[i] = 0.0F;
    }
    if (count > 0 && begin == 0) {
        logits[0] = NAN;
    }
    assert_int_equal(FSDP_OK,
                     fsdp_tp_cross_entropy(ctx, 2, VOCABULARY, FSDP_F32, (int32_t[]){1, 2}, 1.0, logits, losses));
    assert_true(isnan(losses[0]));
    assert_true(fabs(losses[1] - log(VOCABULARY)) < 1e-6);
}

/* ---- a network, against finite differences ------------------------------------------------------------------------- */

/*
 * Words -> their rows of a table -> x + second(tanh(first(x))) -> logits by the table itself (tied) -> loss. In f64; the hidden layer and
 * the vocabulary are divided.
 */
typedef struct network {
    fsdp_context       *ctx;
    fsdp_tp_activations a;
    size_t              rows, word_begin, words, hidden_begin, hidden;
    double table[VOCABULARY * WIDTH], first[WIDTH * HIDDEN], second[HIDDEN * WIDTH]; /* this rank's parts */
    double d_table[VOCABULARY * WIDTH], d_first[WIDTH * HIDDEN], d_second[HIDDEN * WIDTH];
} network;

enum { MOST_ROWS = 16 };

/* c = a b, of m x k and k x n; with `b_turned` b is n x k. */
static void product(const double *a, const double *b, bool b_turned, double *c, size_t m, size_t k, size_t n)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            c[i * n + j] = 0.0;
            for (size_t l = 0; l < k; l++) {
                c[i * n + j] += a[i * k + l] * (b_turned ? b[j * k + l] : b[l * n + j]);
            }
        }
    }
}

/* c += a' b, of m x k and m x n. */
static void add_turned(const double *a, const double *b, double *c, size_t m, size_t k, size_t n)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t l = 0; l < k; l++) {
            for (size_t j = 0; j < n; j++) {
                c[l * n + j] += a[i * k + l] * b[i * n + j];
            }
        }
    }
}

/* The mean loss; and the gradients, where they are wanted. */
static double run(network *n, bool gradients)
{
    const size_t rows = n->rows, own = n->a.outside == FSDP_TP_OWN_ROWS ? rows / (size_t)fsdp_size(n->ctx) : rows;
    int32_t      words[MOST_ROWS], targets[MOST_ROWS];
    double       partial[MOST_ROWS * WIDTH], x[MOST_ROWS * WIDTH], whole[MOST_ROWS * WIDTH], h[MOST_ROWS * HIDDEN];
    double       y[MOST_ROWS * WIDTH], y_whole[MOST_ROWS * WIDTH], logits[MOST_ROWS * VOCABULARY], losses[MOST_ROWS],
        sum = 0.0;
    double dy[MOST_ROWS * WIDTH], dy_whole[MOST_ROWS * WIDTH], dh[MOST_ROWS * HIDDEN], dx[MOST_ROWS * WIDTH];

    for (size_t i = 0; i < rows; i++) {
        words[i]   = word(i);
        targets[i] = word(i + 1);
    }
    ok(fsdp_tp_embed(n->ctx, &n->a, words, VOCABULARY, n->table, partial));
    ok(fsdp_tp_end(n->ctx, &n->a, partial, x));
    ok(fsdp_tp_begin(n->ctx, &n->a, x, whole));
    product(whole, n->first, false, h, rows, WIDTH, n->hidden);
    for (size_t i = 0; i < rows * n->hidden; i++) {
        h[i] = tanh(h[i]);
    }
    product(h, n->second, false, partial, rows, n->hidden, WIDTH);
    ok(fsdp_tp_end(n->ctx, &n->a, partial, y));
    for (size_t i = 0; i < own * WIDTH; i++) {
        y[i] += x[i];
    }
    ok(fsdp_tp_begin(n->ctx, &n->a, y, y_whole));
    product(y_whole, n->table, true, logits, rows, WIDTH, n->words);
    ok(fsdp_tp_cross_entropy(n->ctx, rows, VOCABULARY, FSDP_F64, targets, 1.0 / (double)rows, logits, losses));
    for (size_t i = 0; i < rows; i++) {
        sum += losses[i] / (double)rows;
    }
    if (!gradients) {
        return sum;
    }
    add_turned(logits, y_whole, n->d_table, rows, n->words, WIDTH);
    product(logits, n->table, false, partial, rows, n->words, WIDTH);
    ok(fsdp_tp_end(n->ctx, &n->a, partial, dy));
    ok(fsdp_tp_begin(n->ctx, &n->a, dy, dy_whole));
    add_turned(h, dy_whole, n->d_second, rows, n->hidden, WIDTH);
    product(dy_whole, n->second, true, dh, rows, WIDTH, n->hidden);
    for (size_t i = 0; i < rows * n->hidden; i++) {
        dh[i] *= 1.0 - h[i] * h[i];
    }
    add_turned(whole, dh, n->d_first, rows, WIDTH, n->hidden);
    product(dh, n->first, true, partial, rows, n->hidden, WIDTH);
    ok(fsdp_tp_end(n->ctx, &n->a, partial, dx));
    for (size_t i = 0; i < own * WIDTH; i++) {
        dx[i] += dy[i]; /* what goes past the region */
    }
    ok(fsdp_tp_begin(n->ctx, &n->a, dx, dy_whole));
    ok(fsdp_tp_embed_backward(n->ctx, &n->a, words, VOCABULARY, dy_whole, n->d_table));
    return sum;
}

static void make(network *n, fsdp_context *ctx, fsdp_tp_rows outside)
{
    const size_t ranks = (size_t)fsdp_size(ctx);

    memset(n, 0, sizeof *n);
    n->ctx  = ctx;
    n->rows = (ROWS + ranks - 1) / ranks * ranks;
    n->a    = (fsdp_tp_activations){n->rows, WIDTH, FSDP_F64, outside};
    ok(fsdp_tp_part(ctx, VOCABULARY, &n->word_begin, &n->words));
    ok(fsdp_tp_part(ctx, HIDDEN, &n->hidden_begin, &n->hidden));
    for (size_t i = 0; i < n->words * WIDTH; i++) {
        n->table[i] = draw(n->word_begin * WIDTH + i);
    }
    for (size_t i = 0; i < WIDTH * n->hidden; i++) {
        n->first[i]  = draw(100 + i / n->hidden * HIDDEN + n->hidden_begin + i % n->hidden);
        n->second[i] = draw(200 + n->hidden_begin * WIDTH + i);
    }
}

/* Of one element of one rank's part: all ranks compute the loss. */
static void check_difference(network *n, int owner, double *part, const double *gradient, size_t count, size_t k)
{
    const double step = 1e-5;
    double       loss[2];

    for (int side = 0; side < 2; side++) {
        const double before = fsdp_rank(n->ctx) == owner && k < count ? part[k] : 0.0;

        if (fsdp_rank(n->ctx) == owner && k < count) {
            part[k] += side == 0 ? step : -step;
        }
        loss[side] = run(n, false);
        if (fsdp_rank(n->ctx) == owner && k < count) {
            part[k] = before;
        }
    }
    if (fsdp_rank(n->ctx) == owner && k < count) {
        assert_true(fabs((loss[0] - loss[1]) / (2.0 * step) - gradient[k]) <= 1e-6 * (1.0 + fabs(gradient[k])));
    }
}

static void check_gradients(fsdp_context *ctx, fsdp_tp_rows outside)
{
    static network n;

    make(&n, ctx, outside);
    (void)run(&n, true);
    for (int owner = 0; owner < fsdp_size(ctx); owner++) {
        for (size_t k = 0; k < WIDTH * VOCABULARY; k += 4) {
            check_difference(&n, owner, n.table, n.d_table, n.words * WIDTH, k);
            check_difference(&n, owner, n.first, n.d_first, n.hidden * WIDTH, k);
            check_difference(&n, owner, n.second, n.d_second, n.hidden * WIDTH, k);
        }
    }
}

static void gradients_are_those_of_finite_differences(void **state)
{
    check_gradients(*state, FSDP_TP_ALL_ROWS);
    check_gradients(*state, FSDP_TP_OWN_ROWS);
}

static void both_ways_of_keeping_rows_give_one_loss(void **state)
{
    static network n;
    double         loss[2];

    for (int outside = 0; outside < 2; outside++) {
        make(&n, *state, (fsdp_tp_rows)outside);
        loss[outside] = run(&n, false);
    }
    assert_true(loss[0] == loss[1]);
}

/* ---- refused ------------------------------------------------------------------------------------------------------ */

static void says(fsdp_context *ctx, fsdp_status expected, fsdp_status status, const char *words)
{
    assert_int_equal(expected, status);
    assert_says(ctx, words);
}

static void wrong_activations_are_refused(void **state)
{
    fsdp_context       *ctx   = *state;
    float               x[64] = {0};
    fsdp_tp_activations a     = {1, 2, FSDP_I32, FSDP_TP_ALL_ROWS};
    fsdp_request       *request;

    says(ctx, FSDP_ERR_ARG, fsdp_tp_begin(ctx, &a, x, x), "is i32; use f32, f64, bf16 or f16");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_end(ctx, &a, x, x), "is i32");
    a = (fsdp_tp_activations){1, 2, FSDP_F32, (fsdp_tp_rows)7};
    says(ctx, FSDP_ERR_ARG, fsdp_tp_begin(ctx, &a, x, x), "`outside` is 7");
    a = (fsdp_tp_activations){SIZE_MAX, 2, FSDP_F32, FSDP_TP_ALL_ROWS};
    says(ctx, FSDP_ERR_ARG, fsdp_tp_end(ctx, &a, x, x), "more bytes than memory can address");
    if (fsdp_size(ctx) > 1) {
        a = (fsdp_tp_activations){(size_t)fsdp_size(ctx) + 1, 2, FSDP_F32, FSDP_TP_OWN_ROWS};
        says(ctx, FSDP_ERR_ARG, fsdp_tp_begin(ctx, &a, x, x), "pad them to a multiple, or use FSDP_TP_ALL_ROWS");
        a.rows = (size_t)fsdp_size(ctx); /* one rank has nothing to give */
        says(ctx, FSDP_ERR_ARG, fsdp_tp_begin(ctx, fsdp_rank(ctx) == 1 ? NULL : &a, x, x + 32),
             "rank 1: fsdp_tp_begin: the activations are NULL");
        a.width = 1 + (size_t)fsdp_rank(ctx);
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_tp_begin(ctx, &a, x, x + 32));
    }
    a = (fsdp_tp_activations){1, 2, FSDP_F32, FSDP_TP_ALL_ROWS};
    says(ctx, FSDP_ERR_ARG, fsdp_tp_begin(ctx, &a, NULL, x), "the input is NULL");
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_end(ctx, &a, NULL, x));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_ibegin(ctx, &a, x, x, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_iend(ctx, &a, x, x, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_begin(NULL, &a, x, x));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_end(NULL, &a, x, x));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_ibegin(NULL, &a, x, x, &request));
    assert_int_equal(FSDP_OK, fsdp_tp_end(ctx, &a, x, x));
}

static void wrong_words_are_refused(void **state)
{
    fsdp_context             *ctx   = *state;
    float                     x[64] = {0};
    double                    losses[2];
    const fsdp_tp_activations a = {2, 3, FSDP_F32, FSDP_TP_OWN_ROWS}, half = {2, 3, FSDP_BF16, FSDP_TP_ALL_ROWS};
    const int32_t             high[] = {1, 11}, none[] = {-1, 0}, good[] = {1, 2};
    size_t                    begin;

    says(ctx, FSDP_ERR_ARG, fsdp_tp_embed(ctx, &a, high, 11, x, x + 32),
         "word 11 at row 1; the vocabulary has 0 to 10");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_embed(ctx, &a, none, 11, x, x + 32), "word -1 at row 0");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_embed(ctx, &a, NULL, 11, x, x + 32), "the words are NULL");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_embed(ctx, NULL, good, 11, x, x + 32), "the activations are NULL");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_embed(ctx, &a, good, 0, x, x + 32), "a vocabulary of 0 words");
    says(ctx, FSDP_ERR_UNSUPPORTED, fsdp_tp_embed_backward(ctx, &half, good, 11, x, x + 32), "gradients in bf16");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_cross_entropy(ctx, 2, 11, FSDP_F32, high, 1.0, x, losses), "word 11 at row 1");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_cross_entropy(ctx, 2, 0, FSDP_F32, good, 1.0, x, losses),
         "a vocabulary of 0 words");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_cross_entropy(ctx, 2, 11, FSDP_F32, good, NAN, x, losses), "the scale is ");
    says(ctx, FSDP_ERR_ARG, fsdp_tp_cross_entropy(ctx, 2, 11, FSDP_F32, good, 1.0, x, NULL), "the losses are NULL");
    says(ctx, FSDP_ERR_UNSUPPORTED, fsdp_tp_cross_entropy(ctx, 2, 11, FSDP_BF16, good, 1.0, x, losses),
         "logits in bf16");
    assert_int_equal(FSDP_OK, fsdp_tp_cross_entropy(ctx, 0, 11, FSDP_F32, NULL, 1.0, NULL, NULL));
    if (fsdp_size(ctx) > 1) {
        says(ctx, FSDP_ERR_ARG,
             fsdp_tp_cross_entropy(ctx, 2, 11, FSDP_F32, fsdp_rank(ctx) == 1 ? high : good, 1.0, x, losses),
             "rank 1: fsdp_tp_cross_entropy: word 11");
        assert_int_equal(FSDP_ERR_MISMATCH,
                         fsdp_tp_cross_entropy(ctx, 2, 11, FSDP_F32, good, (double)fsdp_rank(ctx), x, losses));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_part(ctx, 3, &begin, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_part(NULL, 3, &begin, &begin));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_embed(NULL, &a, good, 11, x, x + 32));
    assert_int_equal(FSDP_ERR_ARG, fsdp_tp_cross_entropy(NULL, 2, 11, FSDP_F32, good, 1.0, x, losses));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_follow_each_other_and_differ_by_one_at_most),
        cmocka_unit_test(regions_begin_with_all_rows_and_end_with_sums),
        cmocka_unit_test(regions_work_in_place),
        cmocka_unit_test(words_are_found_wherever_they_are),
        cmocka_unit_test(the_loss_is_that_of_whole_logits),
        cmocka_unit_test(what_is_not_finite_shows_in_its_row_alone),
        cmocka_unit_test(gradients_are_those_of_finite_differences),
        cmocka_unit_test(both_ways_of_keeping_rows_give_one_loss),
        cmocka_unit_test(wrong_activations_are_refused),
        cmocka_unit_test(wrong_words_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
