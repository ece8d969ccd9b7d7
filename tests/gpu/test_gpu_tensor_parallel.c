/**
 * @file
 * Layers divided over GPUs, against the same calls on host memory: regions, words and their loss, with the same bits; what is refused,
 * on which ranks; and in which order things are done.
 */
#include <hip/hip_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "lib/context/context.h"
#include "tests/doubles/hip/double.h"
#include "tests/doubles/hip/job.h"
#include "tests/support/mpi_test.h"

static fsdp_context *host, *device;
static hipStream_t   stream, second_stream;

static void ok(fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
}

static fsdp_context *open_context(fsdp_device_use use)
{
    fsdp_context *ctx;
    fsdp_config   config;

    fsdp_config_init(&config);
    config.device = use;
    ok(fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static int open_all(void **state)
{
    if (hip_double_join_job(state) != 0) {
        return -1;
    }
    host   = open_context(FSDP_DEVICE_HOST);
    device = open_context(FSDP_DEVICE_GPU);
    assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0));
    assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&second_stream, hipStreamNonBlocking, 0));
    ok(fsdp_stream_set(device, stream));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    ok(fsdp_finalize(device));
    ok(fsdp_finalize(host));
    assert_int_equal(hipSuccess, hipStreamDestroy(second_stream));
    return hipStreamDestroy(stream) == hipSuccess ? 0 : -1;
}

/* ---- memory of the device, until the end of a test ----------------------------------------------------------------- */

enum { MOST_SENT = 64 };

static void  *sent[MOST_SENT];
static size_t n_sent;

/* A copy that begins `shift` BYTES behind an aligned address. Nothing is waited for. */
static void *send_shifted(const void *from, size_t bytes, size_t shift)
{
    assert_true(n_sent < MOST_SENT);
    assert_int_equal(hipSuccess, hipMalloc(&sent[n_sent], bytes + shift + 1));
    char *there = (char *)sent[n_sent++] + shift;
    if (bytes > 0) {
        assert_int_equal(hipSuccess, hipMemcpyAsync(there, from, bytes, hipMemcpyDefault, stream));
    }
    return there;
}

static void *send(const void *from, size_t bytes)
{
    return send_shifted(from, bytes, 0);
}

static void fetch(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream));
    }
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
}

/* For what is sent and then changed on the host. */
static void finish(void)
{
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
}

static void drop_all(void)
{
    finish();
    while (n_sent > 0) {
        assert_int_equal(hipSuccess, hipFree(sent[--n_sent]));
    }
}

/* Fails the test unless the device has these bytes. */
static void expect(const void *expected, const void *there, size_t bytes, const char *what)
{
    unsigned char *found = malloc(bytes + 1);

    assert_non_null(found);
    fetch(found, there, bytes);
    for (size_t i = 0; i < bytes; i++) {
        if (found[i] != ((const unsigned char *)expected)[i]) {
            fail_msg("%s: byte %zu of %zu is another one than on the host", what, i, bytes);
        }
    }
    free(found);
}

/* ---- values --------------------------------------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 18 };

/* Some number between -1 and 1. */
static double draw(size_t i)
{
    return (double)((i + 3) * 7919 % 10007) / 5003.5 - 1.0;
}

static void fill(void *values, size_t n, fsdp_dtype dtype, double spread, size_t seed)
{
    assert_true(n * 8 <= MOST_BYTES);
    for (size_t i = 0; i < n; i++) {
        const double value = spread * draw(i * 31 + seed + 1000 * (size_t)fsdp_test_rank());
        ok(fsdp_cast(host, (char *)values + i * fsdp_dtype_size(dtype), dtype, &value, FSDP_F64, 1));
    }
}

static const fsdp_dtype DTYPES[] = {FSDP_F32, FSDP_F64, FSDP_BF16, FSDP_F16};

/* ---- regions -------------------------------------------------------------------------------------------------------- */

static void go(fsdp_context *ctx, const fsdp_tp_activations *a, const void *in, void *out, bool ends, bool waits)
{
    fsdp_request *request;

    if (!waits) {
        ok((ends ? fsdp_tp_end : fsdp_tp_begin)(ctx, a, in, out));
        return;
    }
    ok((ends ? fsdp_tp_iend : fsdp_tp_ibegin)(ctx, a, in, out, &request));
    ok(fsdp_wait(request));
}

static void check_region(const fsdp_tp_activations *a, bool waits)
{
    static char  in[MOST_BYTES], whole[MOST_BYTES], out[MOST_BYTES];
    const size_t all = a->rows * a->width, width = fsdp_dtype_size(a->dtype);
    const bool   divides = a->outside == FSDP_TP_OWN_ROWS;
    const size_t own     = divides ? all / (size_t)fsdp_test_size() : all,
                 place   = divides ? own * width * (size_t)fsdp_test_rank() : 0;
    void *whole_there, *out_there;

    fill(in, own, a->dtype, 1.0, 5);
    const void *in_there = send(in, own * width);
    assert_int_equal(hipSuccess, hipMalloc(&whole_there, all * width + 1));
    assert_int_equal(hipSuccess, hipMalloc(&out_there, own * width + 1));
    go(host, a, in, whole, false, waits);
    go(host, a, whole, out, true, waits);
    go(device, a, in_there, whole_there, false, waits);
    go(device, a, whole_there, out_there, true, waits); /* the host has waited for nothing */
    expect(whole, whole_there, all * width, "all rows");
    expect(out, out_there, own * width, "the sum");
    go(host, a, whole, whole + place, true, waits); /* in place */
    go(device, a, whole_there, (char *)whole_there + place, true, waits);
    expect(whole + place, (char *)whole_there + place, own * width, "the sum in place");
    assert_int_equal(hipSuccess, hipFree(whole_there));
    assert_int_equal(hipSuccess, hipFree(out_there));
    drop_all();
}

static void regions_have_the_bits_of_the_host(void **state)
{
    (void)state;
    for (int d = 0; d < 4; d++) {
        for (size_t rows = 0; rows < 3; rows++) {
            const size_t              ranks = (size_t)fsdp_test_size();
            const fsdp_tp_activations all   = {5 * rows, 7, DTYPES[d], FSDP_TP_ALL_ROWS};
            const fsdp_tp_activations own   = {rows * ranks, 7, DTYPES[d], FSDP_TP_OWN_ROWS};

            check_region(&all, d % 2 == 0);
            if (rows > 0) {
                check_region(&own, d % 2 == 1);
            }
        }
    }
}

/* ---- words ---------------------------------------------------------------------------------------------------------- */

enum { VOCABULARY = 11, MOST_ROWS = 1000 }; /* more than one launch has words */

static int32_t words[MOST_ROWS];

static void choose_words(void)
{
    for (size_t i = 0; i < MOST_ROWS; i++) {
        words[i] = (int32_t)(i * i % VOCABULARY);
    }
}

static void check_embedding(size_t rows, size_t width, fsdp_dtype dtype, size_t shift, bool words_there)
{
    static char               table[MOST_BYTES], out[MOST_BYTES], d_table[MOST_BYTES];
    const fsdp_tp_activations a    = {rows, width, dtype, FSDP_TP_OWN_ROWS}; /* which does not matter */
    const size_t              size = fsdp_dtype_size(dtype);
    size_t                    begin, count;

    ok(fsdp_tp_part(host, VOCABULARY, &begin, &count));
    fill(table, count * width, dtype, 1.0, 7);
    fill(d_table, count * width, dtype, 1.0, 9);
    const int32_t *w           = words_there ? send(words, rows * sizeof *words) : words;
    void          *table_there = send_shifted(table, count * width * size, shift * size);
    void          *d_there     = send_shifted(d_table, count * width * size, shift * size);
    void          *out_there   = send_shifted(out, rows * width * size, shift * size);
    finish();
    ok(fsdp_tp_embed(host, &a, words, VOCABULARY, table, out));
    ok(fsdp_tp_embed(device, &a, w, VOCABULARY, table_there, out_there));
    expect(out, out_there, rows * width * size, "rows of a table");
    if (dtype == FSDP_F32 || dtype == FSDP_F64) {
        fill(out, rows * width, dtype, 1.0, 13);
        out_there = send_shifted(out, rows * width * size, shift * size);
        ok(fsdp_tp_embed_backward(host, &a, words, VOCABULARY, out, d_table));
        ok(fsdp_tp_embed_backward(device, &a, w, VOCABULARY, out_there, d_there));
        expect(d_table, d_there, count * width * size, "the gradient of a table");
    }
    drop_all();
}

static void embeddings_have_the_bits_of_the_host(void **state)
{
    static const size_t widths[] = {5, 8, 16};

    (void)state;
    choose_words();
    for (int d = 0; d < 4; d++) {
        for (size_t w = 0; w < 3; w++) {
            check_embedding(12, widths[w], DTYPES[d], 0, w == 1);
            check_embedding(12, widths[w], DTYPES[d], 1, w == 2);
        }
        check_embedding(0, 8, DTYPES[d], 0, false);
    }
    check_embedding(MOST_ROWS, 8, FSDP_F32, 0, false);
    check_embedding(MOST_ROWS, 6, FSDP_F64, 0, true);
}

/* The host does not look at words on the device. */
static void words_in_no_vocabulary_are_nan_on_every_rank(void **state)
{
    static const int32_t      strange[]             = {3, VOCABULARY, -1, 3};
    const fsdp_tp_activations a                     = {4, 2, FSDP_F32, FSDP_TP_ALL_ROWS};
    float                     table[2 * VOCABULARY] = {0}, out[8], d_table[2 * VOCABULARY];
    size_t                    begin, count;

    (void)state;
    ok(fsdp_tp_part(device, VOCABULARY, &begin, &count));
    const int32_t *w           = send(strange, sizeof strange);
    float         *table_there = send(table, sizeof table), *out_there = send(out, sizeof out);
    ok(fsdp_tp_embed(device, &a, w, VOCABULARY, table_there, out_there));
    fetch(out, out_there, sizeof out);
    for (size_t i = 0; i < 8; i++) {
        const bool known = i < 2 || i >= 6;

        assert_true(known ? out[i] == 0.0F : isnan(out[i]));
        out[i] = known ? 1.0F : 100.0F;
    }
    out_there = send(out, sizeof out);
    ok(fsdp_tp_embed_backward(device, &a, w, VOCABULARY, out_there, table_there));
    fetch(d_table, table_there, sizeof table);
    for (size_t k = 0; k < 2 * count; k++) {
        assert_true(d_table[k] == (begin + k / 2 == 3 ? 2.0F : 0.0F));
    }
    drop_all();
}

/* ---- cross-entropy --------------------------------------------------------------------------------------------------- */

static void check_entropy(size_t rows, size_t vocabulary, fsdp_dtype dtype, double spread, bool targets_there)
{
    static char    logits[MOST_BYTES];
    static double  losses[MOST_ROWS];
    static int32_t targets[MOST_ROWS];
    const size_t   size  = fsdp_dtype_size(dtype);
    const double   scale = 1.0 / 7.0;
    size_t         begin, count;

    ok(fsdp_tp_part(host, vocabulary, &begin, &count));
    fill(logits, rows * count, dtype, spread, 3);
    for (size_t i = 0; i < rows; i++) {
        targets[i] = i % 5 == 4 ? FSDP_TP_NO_TARGET : (int32_t)(i * 37 % vocabulary);
    }
    const int32_t *t            = targets_there ? send(targets, rows * sizeof *targets) : targets;
    void          *logits_there = send_shifted(logits, rows * count * size, size);
    double        *losses_there = send(losses, rows * sizeof *losses);
    finish();
    ok(fsdp_tp_cross_entropy(host, rows, vocabulary, dtype, targets, scale, logits, losses));
    ok(fsdp_tp_cross_entropy(device, rows, vocabulary, dtype, t, scale, logits_there, losses_there));
    expect(losses, losses_there, rows * sizeof *losses, "losses");
    expect(logits, logits_there, rows * count * size, "gradients of logits");
    drop_all();
}

static void losses_have_the_bits_of_the_host(void **state)
{
    static const double spreads[] = {0.0, 1.0, 30.0, 3000.0};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        check_entropy(12, VOCABULARY, FSDP_F32, spreads[i], i % 2 == 0);
        check_entropy(12, VOCABULARY, FSDP_F64, spreads[i], i % 2 == 1);
    }
    check_entropy(12, 2, FSDP_F32, 1.0, false); /* some ranks have no column */
    check_entropy(3, 3 * 2050, FSDP_F32, 1.0, false);
    check_entropy(MOST_ROWS, 5, FSDP_F32, 1.0, false);
    check_entropy(0, 5, FSDP_F32, 1.0, false);
}

static void what_is_not_finite_or_no_target_shows_in_its_row_alone(void **state)
{
    static const int32_t targets[] = {1, 2, VOCABULARY, 2};
    float                logits[4 * VOCABULARY];
    double               losses[4];
    size_t               begin, count;

    (void)state;
    ok(fsdp_tp_part(device, VOCABULARY, &begin, &count));
    for (size_t i = 0; i < 4 * count; i++) {
        logits[i] = i == 0 && begin == 0 ? NAN : 0.0F;
    }
    float  *logits_there = send(logits, 4 * count * sizeof *logits);
    double *losses_there = send(losses, sizeof losses);
    ok(fsdp_tp_cross_entropy(device, 4, VOCABULARY, FSDP_F32, send(targets, sizeof targets), 1.0, logits_there,
                             losses_there));
    fetch(losses, losses_there, sizeof losses);
    fetch(logits, logits_there, 4 * count * sizeof *logits);
    assert_true(isnan(losses[0]) && isnan(losses[2]));
    assert_true(fabs(losses[1] - log(VOCABULARY)) < 1e-6 && losses[3] == losses[1]);
    for (size_t k = 0; k < count; k++) {
        assert_true(isnan(logits[k]) && isnan(logits[2 * count + k]));
        assert_true(isfinite(logits[count + k]) && isfinite(logits[3 * count + k]));
    }
    drop_all();
}

/* ---- refused --------------------------------------------------------------------------------------------------------- */

static void says(fsdp_context *ctx, fsdp_status expected, fsdp_status status, const char *text)
{
    assert_int_equal(expected, status);
    assert_says(ctx, text);
}

static void memory_of_two_kinds_is_refused(void **state)
{
    const fsdp_tp_activations a   = {2, 3, FSDP_F32, FSDP_TP_ALL_ROWS},
                              own = {2 * (size_t)fsdp_test_size(), 3, FSDP_F32, FSDP_TP_OWN_ROWS};
    static float  here[64];
    float        *there = send(here, sizeof here);
    const int32_t two[] = {1, 2}, *two_there = send(two, sizeof two);
    double        losses[2] = {0}, *losses_there = send(losses, sizeof losses);
    const bool    last = fsdp_test_rank() == fsdp_test_size() - 1;

    (void)state;
    says(device, FSDP_ERR_ARG, fsdp_tp_begin(device, &a, here, there), "the output (");
    says(device, FSDP_ERR_ARG, fsdp_tp_begin(device, &a, there, here), "pass two of one kind");
    says(device, FSDP_ERR_ARG, fsdp_tp_begin(device, &a, there, there + 1), "overlap; pass the same address twice");
    says(device, FSDP_ERR_ARG, fsdp_tp_embed(device, &a, two, 11, here, there), "the output (");
    says(device, FSDP_ERR_ARG, fsdp_tp_embed(device, &a, two_there, 11, here, here + 32), "pass words in host memory");
    says(device, FSDP_ERR_ARG, fsdp_tp_embed_backward(device, &a, two, 11, there, here), "the rows' gradient (");
    says(device, FSDP_ERR_ARG, fsdp_tp_embed(device, &a, (int32_t[]){1, 11}, 11, there, there + 32),
         "word 11 at row 1; the vocabulary has 0 to 10");
    /* where ranks meet, all of them are told */
    says(device, FSDP_ERR_ARG, fsdp_tp_end(device, &own, last ? here : there, there), "pass two of one kind");
    says(device, FSDP_ERR_ARG,
         fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, two, 1.0, there, last ? losses : losses_there),
         "pass two of one kind");
    says(device, FSDP_ERR_ARG,
         fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, last ? two_there : two, 1.0, last ? here : there,
                               last ? losses : losses_there),
         "pass words in host memory");
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, two, 1.0, last ? here : there,
                                                                  last ? losses : losses_there));
    }
    ok(fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, two, 1.0, there, losses_there));
    drop_all();
}

static void memory_that_the_context_does_not_use_is_refused(void **state)
{
    const fsdp_tp_activations a = {2, 3, FSDP_F32, FSDP_TP_ALL_ROWS};
    static float              here[64];
    float                    *there  = send(here, sizeof here), *other;
    double                   *losses = send(here, 16), mine[2];
    const int32_t             two[] = {1, 2}, *two_there = send(two, sizeof two);
    const bool                last      = fsdp_test_rank() == fsdp_test_size() - 1;
    const char *const         no_gpu    = "this context uses no GPU (FSDP_DEVICE is 'host')";
    const char *const         elsewhere = "is memory of another GPU than 0";

    (void)state;
    says(host, FSDP_ERR_UNSUPPORTED, fsdp_tp_begin(host, &a, there, there + 32), no_gpu);
    says(host, FSDP_ERR_UNSUPPORTED, fsdp_tp_embed(host, &a, two, 11, there, there + 32), no_gpu);
    says(host, FSDP_ERR_UNSUPPORTED, fsdp_tp_embed(host, &a, two_there, 11, here, here + 32), no_gpu);
    says(host, FSDP_ERR_UNSUPPORTED, fsdp_tp_embed_backward(host, &a, two, 11, there, there + 32), no_gpu);
    says(host, FSDP_ERR_UNSUPPORTED,
         fsdp_tp_cross_entropy(host, 2, 9, FSDP_F32, two, 1.0, last ? there : here, last ? losses : mine), no_gpu);
    says(host, FSDP_ERR_UNSUPPORTED, fsdp_tp_end(host, &a, last ? there : here, last ? there : here), no_gpu);

    assert_int_equal(hipSuccess, hipSetDevice(1));
    assert_int_equal(hipSuccess, hipMalloc((void **)&other, 256));
    assert_int_equal(hipSuccess, hipSetDevice(0));
    says(device, FSDP_ERR_ARG, fsdp_tp_begin(device, &a, other, there), elsewhere);
    says(device, FSDP_ERR_ARG, fsdp_tp_embed(device, &a, two, 11, other, there), elsewhere);
    says(device, FSDP_ERR_ARG, fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, two, 1.0, last ? other : there, losses),
         elsewhere);
    assert_int_equal(hipSuccess, hipFree(other));
    drop_all();
}

static void a_kernel_that_fails_on_one_rank_fails_on_all(void **state)
{
    const int32_t two[] = {1, 2};
    float         x[64] = {0}, *logits = send(x, sizeof x);
    double       *losses = send(x, 16);
    const bool    last   = fsdp_test_rank() == fsdp_test_size() - 1;

    (void)state;
    for (int nth = 1; nth <= 4; nth++) { /* words, two for the largest logits, exponentials */
        if (last) {
            hip_double_fail("hipLaunchKernel", nth, hipErrorUnknown);
        }
        assert_int_equal(FSDP_ERR_DEVICE, fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, two, 1.0, logits, losses));
        hip_double_fail("hipLaunchKernel", 0, hipSuccess);
    }
    ok(fsdp_tp_cross_entropy(device, 2, 9, FSDP_F32, two, 1.0, logits, losses));
    drop_all();
}

/* ---- order and memory ------------------------------------------------------------------------------------------------ */

/* Of a context of its own, so that nothing has been asked for before. */
static void scratch_memory_is_counted_and_is_as_large_as_the_largest_call(void **state)
{
    fsdp_context             *ctx = open_context(FSDP_DEVICE_GPU);
    fsdp_memory               before, after;
    const fsdp_tp_activations a = {MOST_ROWS, 2, FSDP_F32, FSDP_TP_ALL_ROWS}, few = {4, 2, FSDP_F32, FSDP_TP_ALL_ROWS};
    static float              out[2 * MOST_ROWS];
    float                    *there = send(out, sizeof out), *table = send(out, sizeof(float[2 * VOCABULARY]));

    (void)state;
    choose_words();
    ok(fsdp_stream_set(ctx, stream));
    ok(fsdp_memory_usage(ctx, &before));
    ok(fsdp_tp_embed(ctx, &few, words, VOCABULARY, table, there));
    ok(fsdp_tp_embed_backward(ctx, &a, words, VOCABULARY, there, table));
    ok(fsdp_tp_embed(ctx, &a, words, VOCABULARY, table, there));
    ok(fsdp_memory_usage(ctx, &after));
    const size_t size = (MOST_ROWS * 12 + 255) / 256 * 256; /* a word and a link of each row */
    assert_int_equal(before.device + size, after.device);
    assert_int_equal(before.current[FSDP_MEMORY_STAGING] + size, after.current[FSDP_MEMORY_STAGING]);
    drop_all();
    ok(fsdp_finalize(ctx));
}

/* Both use the same scratch memory, and nothing else that the other one does. The double ends a program in which it is not in order. */
static void two_streams_take_turns(void **state)
{
    const fsdp_tp_activations a = {12, 4, FSDP_F32, FSDP_TP_ALL_ROWS};
    static float              zeros[12 * 4 + 4 * VOCABULARY];
    float                    *one = send(zeros, sizeof zeros), *two = send(zeros, sizeof zeros);

    (void)state;
    choose_words();
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream));
    for (int turn = 0; turn < 3; turn++) {
        ok(fsdp_stream_set(device, stream));
        ok(fsdp_tp_embed(device, &a, words, VOCABULARY, one + 12 * 4, one));
        ok(fsdp_stream_set(device, second_stream));
        ok(fsdp_tp_embed(device, &a, words + 12, VOCABULARY, two + 12 * 4, two));
    }
    ok(fsdp_stream_set(device, stream));
    assert_int_equal(hipSuccess, hipStreamSynchronize(second_stream));
    drop_all();
}

/* What the program puts into its stream before and behind a region comes before and behind it. */
static void end_region(fsdp_context *tp)
{
    const fsdp_tp_activations a = {3, 5, FSDP_F32, FSDP_TP_ALL_ROWS};
    float                     x[15], *there;

    for (size_t i = 0; i < 15; i++) {
        x[i] = (float)i;
    }
    there = send(x, sizeof x);
    ok(fsdp_tp_end(tp, &a, there, there));
    ok(fsdp_tp_begin(tp, &a, there, there));
    fetch(x, there, sizeof x);
    for (size_t i = 0; i < 15; i++) {
        assert_true(x[i] == (float)(i * (size_t)fsdp_size(tp)));
    }
    drop_all();
}

/* Those of the mesh, and those of a mesh of one of them; set on any. */
static void axes_of_a_mesh_have_its_stream(void **state)
{
    const int       n = fsdp_test_size(), across = n % 2 == 0 ? n / 2 : n;
    const fsdp_axis axes[] = {{"dp", across}, {"tp", 0}}, inner_axes[] = {{"tp", n / across}, {"alone", 1}};
    fsdp_mesh      *mesh, *inner;
    fsdp_context   *tp, *alone;

    (void)state;
    ok(fsdp_mesh_create(device, axes, 2, NULL, &mesh));
    ok(fsdp_mesh_context(mesh, "tp", &tp));
    ok(fsdp_mesh_create(tp, inner_axes, 2, NULL, &inner));
    ok(fsdp_mesh_context(inner, "alone", &alone));
    ok(fsdp_stream_set(alone, second_stream));
    assert_ptr_equal(second_stream, fsdpi_gpu_caller(&device->gpu));
    ok(fsdp_stream_set(device, stream));
    assert_ptr_equal(stream, fsdpi_gpu_caller(&tp->gpu));
    assert_ptr_equal(stream, fsdpi_gpu_caller(&alone->gpu));
    end_region(tp);
    end_region(alone);
    fsdp_mesh_destroy(inner);
    fsdp_mesh_destroy(mesh);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_have_the_bits_of_the_host),
        cmocka_unit_test(embeddings_have_the_bits_of_the_host),
        cmocka_unit_test(words_in_no_vocabulary_are_nan_on_every_rank),
        cmocka_unit_test(losses_have_the_bits_of_the_host),
        cmocka_unit_test(what_is_not_finite_or_no_target_shows_in_its_row_alone),
        cmocka_unit_test(memory_of_two_kinds_is_refused),
        cmocka_unit_test(memory_that_the_context_does_not_use_is_refused),
        cmocka_unit_test(a_kernel_that_fails_on_one_rank_fails_on_all),
        cmocka_unit_test(scratch_memory_is_counted_and_is_as_large_as_the_largest_call),
        cmocka_unit_test(two_streams_take_turns),
        cmocka_unit_test(axes_of_a_mesh_have_its_stream),
    };

    return fsdp_test_main(argc, argv, tests, open_all, close_all);
}
