/* The hand-written backward pass of 04_fashion_mnist. Compiled with its f64 form, in one process, gradients are held against
 * central differences and written to a file; compiled with its f32 form, on several ranks that share the images and
 * normalize by the library, the sum of theirs is held against that file. Both times the argument names it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "mpi-examples/04_fashion_mnist/fashion_model.h"
#include "tests/support/mpi_test.h"

#define IMAGES        5
#define CHECKED       48 /* elements per tensor */
#define DIFFERENCE    1e-6
#define TOLERANCE_F64 1e-7
#define TOLERANCE_F32 5e-6
#define EPS           1e-5

enum { MOST_MAPS = 32 };

static const char *gradient_file;

typedef struct test_model {
    fsdp_context        *ctx; /* of the f32 form */
    fashion_activations *activations;
    size_t               begin, end; /* this rank's images */
    unsigned char        labels[IMAGES];
    real                *params[FASHION_N_UNITS][FASHION_MOST_TENSORS];
    real                *grads[FASHION_N_UNITS][FASHION_MOST_TENSORS];
    double               mean[FASHION_BLOCKS][MOST_MAPS], scale[FASHION_BLOCKS][MOST_MAPS];
    double               count[FASHION_BLOCKS];
} test_model;

/* Uniform in [-1, 1), the same in f32 and f64. */
static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(*state >> 32) / 2147483648.0;
}

static real *random_values(size_t n, double mean, double spread, uint64_t *state)
{
    real  *values = malloc(n * sizeof *values);
    size_t i;

    assert_non_null(values);
    for (i = 0; i < n; i++) {
        values[i] = (real)(float)(mean + spread * next_random(state));
    }
    return values;
}

static void add_tensor(test_model *m, size_t unit, size_t i, uint64_t *state)
{
    const fashion_tensor t      = fashion_unit_tensor(unit, i);
    const double         spread = t.deviation > 0 ? 1.7 * t.deviation : 0.3;

    m->params[unit][i] = random_values(t.elements, t.mean, spread, state);
    m->grads[unit][i]  = calloc(t.elements, sizeof(real));
    assert_non_null(m->grads[unit][i]);
}

/* Every rank draws all images and keeps its own. */
static void add_images(test_model *m, uint64_t *state)
{
    size_t i;

    for (i = 0; i < IMAGES; i++) {
        real *image = random_values(FASHION_PIXELS, 0, 1.7, state);

        if (i >= m->begin && i < m->end) {
            memcpy(fashion_image(m->activations, i - m->begin), image, FASHION_PIXELS * sizeof *image);
            m->labels[i - m->begin] = (unsigned char)(3 * i % FASHION_CLASSES);
        }
        free(image);
    }
    fashion_set_images(m->activations, m->end - m->begin);
}

static void open_model(test_model *m, fsdp_context *ctx)
{
    const size_t rank = ctx ? (size_t)fsdp_rank(ctx) : 0, size = ctx ? (size_t)fsdp_size(ctx) : 1;
    uint64_t     state = 2017;
    size_t       unit, i;

    memset(m, 0, sizeof *m);
    m->ctx         = ctx;
    m->begin       = IMAGES * rank / size;
    m->end         = IMAGES * (rank + 1) / size;
    m->activations = fashion_activations_create(IMAGES);
    assert_non_null(m->activations);
    add_images(m, &state);
    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        for (i = 0; i < fashion_unit_tensors(unit); i++) {
            add_tensor(m, unit, i, &state);
        }
    }
}

static void close_model(test_model *m)
{
    size_t unit, i;

    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        for (i = 0; i < fashion_unit_tensors(unit); i++) {
            free(m->params[unit][i]);
            free(m->grads[unit][i]);
        }
    }
    fashion_activations_destroy(m->activations);
}

static const real *const *params_of(const test_model *m, size_t unit)
{
    return (const real *const *)m->params[unit];
}

#ifdef FASHION_DOUBLE
/* Element `e` of map `c`, counted over all images. */
static size_t place(const fashion_norm *n, size_t c, size_t e)
{
    return (e / n->pixels * n->maps + c) * n->pixels + e % n->pixels;
}

/* Batch normalization as its paper writes it. */
static void normalize(test_model *m, size_t block)
{
    const fashion_norm n = fashion_norm_of(m->activations, block);
    const real        *w = m->params[block][FASHION_NORM_WEIGHT], *b = m->params[block][FASHION_NORM_BIAS];
    size_t             c, e, count = n.images * n.pixels;

    for (c = 0; c < n.maps; c++) {
        double mean = 0, variance = 0;

        for (e = 0; e < count; e++) {
            mean += n.in[place(&n, c, e)] / (double)count;
        }
        for (e = 0; e < count; e++) {
            variance += pow(n.in[place(&n, c, e)] - mean, 2) / (double)count;
        }
        m->mean[block][c]  = mean;
        m->scale[block][c] = 1 / sqrt(variance + EPS);
        for (e = 0; e < count; e++) {
            n.out[place(&n, c, e)] = (n.in[place(&n, c, e)] - mean) * m->scale[block][c] * w[c] + b[c];
        }
    }
}

static void normalize_backward(test_model *m, size_t block)
{
    const fashion_norm n = fashion_norm_of(m->activations, block);
    const real        *w = m->params[block][FASHION_NORM_WEIGHT];
    size_t             c, e, count = n.images * n.pixels;

    for (c = 0; c < n.maps; c++) {
        const double mean = m->mean[block][c], scale = m->scale[block][c];
        double       sum = 0, product = 0;

        for (e = 0; e < count; e++) {
            sum += n.gradient[place(&n, c, e)];
            product += n.gradient[place(&n, c, e)] * (n.in[place(&n, c, e)] - mean) * scale;
        }
        m->grads[block][FASHION_NORM_WEIGHT][c] += product;
        m->grads[block][FASHION_NORM_BIAS][c] += sum;
        for (e = 0; e < count; e++) {
            real        *d = &n.gradient[place(&n, c, e)];
            const double x = (n.in[place(&n, c, e)] - mean) * scale;

            *d = w[c] * scale * (*d - sum / (double)count - x * product / (double)count);
        }
    }
}
#else
static fsdp_batch_norm_saved saved_of(test_model *m, size_t block)
{
    return (fsdp_batch_norm_saved){m->mean[block], m->scale[block], m->count[block]};
}

static void normalize(test_model *m, size_t block)
{
    const fashion_norm            n       = fashion_norm_of(m->activations, block);
    const fsdp_batch_norm_shape   shape   = {n.images, n.maps, n.pixels};
    const fsdp_batch_norm_options options = {sizeof options, EPS, 0.1};
    fsdp_batch_norm_saved         saved   = saved_of(m, block);

    assert_int_equal(FSDP_OK,
                     fsdp_batch_norm_forward(m->ctx, &shape, &options, n.in, m->params[block][FASHION_NORM_WEIGHT],
                                             m->params[block][FASHION_NORM_BIAS], NULL, n.out, &saved));
    m->count[block] = saved.count;
}

static void normalize_backward(test_model *m, size_t block)
{
    const fashion_norm          n     = fashion_norm_of(m->activations, block);
    const fsdp_batch_norm_shape shape = {n.images, n.maps, n.pixels};
    const fsdp_batch_norm_saved saved = saved_of(m, block);

    assert_int_equal(FSDP_OK,
                     fsdp_batch_norm_backward(m->ctx, &shape, n.in, m->params[block][FASHION_NORM_WEIGHT], &saved,
                                              n.gradient, n.gradient, m->grads[block][FASHION_NORM_WEIGHT],
                                              m->grads[block][FASHION_NORM_BIAS]));
}
#endif

/* This rank's part of the mean loss. */
static double run_forward(test_model *m)
{
    size_t block;

    for (block = 0; block < FASHION_BLOCKS; block++) {
        fashion_convolve(m->activations, block, params_of(m, block));
        normalize(m, block);
        fashion_pool(m->activations, block);
    }
    fashion_head(m->activations, params_of(m, FASHION_HEAD));
    return fashion_loss(m->activations, m->labels) / IMAGES;
}

static void run_backward(test_model *m)
{
    size_t block;

    (void)run_forward(m);
    fashion_head_backward(m->activations, m->labels, 1.0 / IMAGES, params_of(m, FASHION_HEAD), m->grads[FASHION_HEAD]);
    for (block = FASHION_BLOCKS; block-- > 0;) {
        fashion_pool_backward(m->activations, block);
        normalize_backward(m, block);
        fashion_convolve_backward(m->activations, block, params_of(m, block), m->grads[block]);
    }
}

#ifdef FASHION_DOUBLE
/* The error and the size of the gradient over elements of a tensor, spread evenly over it. */
static void compare_with_differences(test_model *m, size_t unit, size_t i, double *error, double *size)
{
    const size_t n = fashion_unit_tensor(unit, i).elements, checked = n < CHECKED ? n : CHECKED;
    real        *values = m->params[unit][i];
    size_t       k;

    *error = *size = 0;
    for (k = 0; k < checked; k++) {
        const size_t e    = k * n / checked;
        const real   kept = values[e];
        double       above, below;

        values[e] = kept + DIFFERENCE;
        above     = run_forward(m);
        values[e] = kept - DIFFERENCE;
        below     = run_forward(m);
        values[e] = kept;
        *error    = hypot(*error, (above - below) / (2 * DIFFERENCE) - m->grads[unit][i][e]);
        *size     = hypot(*size, m->grads[unit][i][e]);
    }
}

static void gradients_agree_with_central_differences(void **state)
{
    test_model m;
    size_t     unit, i;

    (void)state;
    open_model(&m, NULL);
    run_backward(&m);
    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        for (i = 0; i < fashion_unit_tensors(unit); i++) {
            double error, size;

            compare_with_differences(&m, unit, i, &error, &size);
            print_message("%-12s norm %.3e, error %.1e of it\n", fashion_unit_tensor(unit, i).name, size, error / size);
            assert_true(size > 0 && error <= TOLERANCE_F64 * size);
        }
    }
    close_model(&m);
}

static void gradients_are_written_for_f32(void **state)
{
    FILE      *file = fopen(gradient_file, "wb");
    test_model m;
    size_t     unit, i;

    (void)state;
    assert_non_null(file);
    open_model(&m, NULL);
    run_backward(&m);
    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        for (i = 0; i < fashion_unit_tensors(unit); i++) {
            const size_t n = fashion_unit_tensor(unit, i).elements;

            assert_int_equal(n, fwrite(m.grads[unit][i], sizeof(double), n, file));
        }
    }
    close_model(&m);
    assert_int_equal(0, fclose(file));
}

static void sizes_are_what_the_layers_make_them(void **state)
{
    (void)state;
    /* 16 x 25 + 2 x 16, 32 x 16 x 25 + 2 x 32, 10 x 1568 + 10 */
    assert_int_equal(28986, fashion_parameters());
    assert_int_equal(0, fashion_activations_bytes(SIZE_MAX / 2));
}
#else
/* Reads the gradient of one tensor, as f64 has it, from `file`. */
static void compare_with_f64(const test_model *m, size_t unit, size_t i, FILE *file)
{
    const size_t n     = fashion_unit_tensor(unit, i).elements;
    double       error = 0, size = 0, *sums = malloc(n * sizeof *sums);
    size_t       e;

    assert_non_null(sums);
    for (e = 0; e < n; e++) {
        sums[e] = (double)m->grads[unit][i][e];
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (e = 0; e < n; e++) {
        double expected;

        assert_int_equal(1, fread(&expected, sizeof expected, 1, file));
        error = hypot(error, sums[e] - expected);
        size  = hypot(size, expected);
    }
    free(sums);
    print_message("%-12s error %.1e of the norm\n", fashion_unit_tensor(unit, i).name, error / size);
    assert_true(size > 0 && error <= TOLERANCE_F32 * size);
}

static void gradients_of_all_ranks_add_up_to_those_of_f64(void **state)
{
    FILE      *file = fopen(gradient_file, "rb");
    test_model m;
    size_t     unit, i;

    assert_non_null(file);
    open_model(&m, *state);
    run_backward(&m);
    for (unit = 0; unit < FASHION_N_UNITS; unit++) {
        for (i = 0; i < fashion_unit_tensors(unit); i++) {
            compare_with_f64(&m, unit, i, file);
        }
    }
    close_model(&m);
    (void)fclose(file);
}
#endif

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s FILE-OF-GRADIENTS\n", argv[0]);
        return 2;
    }
    gradient_file = argv[1];
#ifdef FASHION_DOUBLE
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_what_the_layers_make_them),
        cmocka_unit_test(gradients_agree_with_central_differences),
        cmocka_unit_test(gradients_are_written_for_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_all_ranks_add_up_to_those_of_f64),
    };
    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
#endif
}
