/* The hand-written backward pass of 03_gpt. Compiled with its f64 form, gradients are held against central differences and
 * written to a file; compiled with its f32 form, they are held against that file. Both times the argument names it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mpi-examples/03_gpt/gpt_model.h"

#define MOST_UNITS          3
#define CHECKED             48 /* elements per tensor */
#define DIFFERENCE          2e-5
#define TOLERANCE_F64       1e-6
#define TOLERANCE_F32       5e-6
#define TOLERANCE_CONTINUED (sizeof(real) == sizeof(double) ? 1e-12 : 1e-4)

static const char *gradient_file;

/* Odd sizes, and once more than one block of attention rows, the last one not full. */
static const struct {
    gpt_config config;
    size_t     batch;
} cases[] = {{{2, 3, 36, 17}, 3}, {{2, 2, 34, 97}, 2}};
#define N_CASES (sizeof cases / sizeof cases[0])

/* A model with all its units: the embedding first, then the blocks. */
typedef struct test_model {
    gpt_config       config;
    gpt_activations *activations;
    gpt_pass         pass;
    unsigned char   *text;
    size_t           n_units;
    size_t           n_tensors[MOST_UNITS];
    gpt_tensor       tensors[MOST_UNITS][GPT_N_BLOCK_TENSORS];
    real            *params[MOST_UNITS][GPT_N_BLOCK_TENSORS];
    real            *grads[MOST_UNITS][GPT_N_BLOCK_TENSORS];
} test_model;

/* Uniform in [-1, 1), the same in f32 and f64. */
static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(*state >> 32) / 2147483648.0;
}

/* Values larger than GPT-2's own initial ones, so that nothing is nearly linear, and biases that are not zero. */
static void fill_tensor(const gpt_tensor *tensor, real *values, uint64_t *state)
{
    size_t i;

    for (i = 0; i < tensor->elements; i++) {
        values[i] = (real)(float)(tensor->mean + 0.3 * next_random(state));
    }
}

static void add_unit_tensors(test_model *m, size_t unit, uint64_t *state)
{
    size_t i;

    m->n_tensors[unit] = unit ? GPT_N_BLOCK_TENSORS : GPT_N_EMBEDDING_TENSORS;
    for (i = 0; i < m->n_tensors[unit]; i++) {
        gpt_tensor *tensor = &m->tensors[unit][i];

        if (unit) {
            gpt_block_tensor(&m->config, unit - 1, i, tensor);
        } else {
            gpt_embedding_tensor(&m->config, i, tensor);
        }
        m->params[unit][i] = calloc(tensor->elements, sizeof(real));
        m->grads[unit][i]  = calloc(tensor->elements, sizeof(real));
        assert_non_null(m->params[unit][i]);
        assert_non_null(m->grads[unit][i]);
        fill_tensor(tensor, m->params[unit][i], state);
    }
}

static void open_model(test_model *m, size_t which)
{
    uint64_t state = 12345 + which;
    size_t   i, bytes;

    memset(m, 0, sizeof *m);
    m->config      = cases[which].config;
    m->n_units     = m->config.layers + 1;
    m->activations = gpt_activations_create(&m->config, cases[which].batch);
    assert_non_null(m->activations);
    for (i = 0; i < m->n_units; i++) {
        add_unit_tensors(m, i, &state);
    }
    bytes   = cases[which].batch * (m->config.context + 1);
    m->text = malloc(bytes);
    assert_non_null(m->text);
    for (i = 0; i < bytes; i++) {
        m->text[i] = (unsigned char)(128 + 120 * next_random(&state));
    }
    m->pass = (gpt_pass){m->text, m->config.context + 1, cases[which].batch, 0, m->config.context};
}

static void close_model(test_model *m)
{
    size_t unit, i;

    for (unit = 0; unit < m->n_units; unit++) {
        for (i = 0; i < m->n_tensors[unit]; i++) {
            free(m->params[unit][i]);
            free(m->grads[unit][i]);
        }
    }
    free(m->text);
    gpt_activations_destroy(m->activations);
}

static const real *const *params_of(const test_model *m, size_t unit)
{
    return (const real *const *)m->params[unit];
}

static void run_forward(test_model *m, const gpt_pass *pass)
{
    size_t i;

    gpt_embedding_forward(m->activations, pass, params_of(m, 0));
    for (i = 0; i < m->config.layers; i++) {
        gpt_block_forward(m->activations, pass, i, params_of(m, i + 1));
    }
    gpt_head_forward(m->activations, pass, params_of(m, 0));
}

static double mean_loss(test_model *m)
{
    run_forward(m, &m->pass);
    return gpt_loss(m->activations, &m->pass) / (double)(m->pass.batch * m->pass.length);
}

static void run_backward(test_model *m)
{
    size_t i;

    (void)mean_loss(m);
    gpt_head_backward(m->activations, &m->pass, 1, params_of(m, 0), m->grads[0]);
    for (i = m->config.layers; i-- > 0;) {
        gpt_block_backward(m->activations, &m->pass, i, params_of(m, i + 1), m->grads[i + 1]);
    }
    gpt_embedding_backward(m->activations, &m->pass, m->grads[0]);
}

static void tensor_names_and_shapes_are_hugging_faces(void **state)
{
    const gpt_config config = {12, 12, 768, 1024};
    gpt_tensor       t;

    (void)state;
    gpt_embedding_tensor(&config, GPT_WPE, &t);
    assert_string_equal("wpe.weight", t.name);
    assert_int_equal(1024, t.shape[0]);
    assert_int_equal(768, t.shape[1]);
    gpt_block_tensor(&config, 11, GPT_ATTN_WEIGHT, &t);
    assert_string_equal("h.11.attn.c_attn.weight", t.name);
    assert_int_equal(768, t.shape[0]);
    assert_int_equal(2304, t.shape[1]);
    gpt_block_tensor(&config, 0, GPT_PROJ_BIAS, &t);
    assert_string_equal("h.0.mlp.c_proj.bias", t.name);
    assert_int_equal(1, t.n_dims);
    /* GPT-2 small has 124439808 parameters with its 50257 tokens. */
    assert_int_equal(124439808 - (50257 - GPT_VOCABULARY) * 768, gpt_parameters(&config));
}

static void oversized_models_are_refused(void **state)
{
    const gpt_config wide = {1, 1, 1000000000, 8}, deep = {(size_t)1 << 62, 1, 64, 8}, usual = {1, 1, 8, 8};

    (void)state;
    assert_int_equal(0, gpt_parameters(&wide));
    assert_int_equal(0, gpt_parameters(&deep));
    assert_int_equal(0, gpt_activations_bytes(&wide, 1));
    assert_int_equal(0, gpt_activations_bytes(&usual, (size_t)1 << 40));
    assert_null(gpt_activations_create(&deep, 1));
}

static void a_text_continued_gives_the_logits_of_the_whole(void **state)
{
    size_t which, v;

    (void)state;
    for (which = 0; which < N_CASES; which++) {
        real       whole[GPT_VOCABULARY];
        test_model m;
        gpt_pass   pass;

        open_model(&m, which);
        pass       = m.pass;
        pass.batch = 1;
        run_forward(&m, &pass);
        memcpy(whole, gpt_last_logits(m.activations, &pass), sizeof whole);
        pass.length = m.config.context / 2;
        run_forward(&m, &pass);
        for (pass.first = pass.length++; pass.first < m.config.context; pass.first = pass.length++) {
            run_forward(&m, &pass);
        }
        pass.length = m.config.context;
        for (v = 0; v < GPT_VOCABULARY; v++) {
            assert_true(fabs((double)(whole[v] - gpt_last_logits(m.activations, &pass)[v])) < TOLERANCE_CONTINUED);
        }
        close_model(&m);
    }
}

#ifdef GPT_DOUBLE
/* The error and the size of the gradient over `checked` elements of a tensor, spread evenly over it. */
static void compare_with_differences(test_model *m, size_t unit, size_t i, double *error, double *size)
{
    const size_t n = m->tensors[unit][i].elements, checked = n < CHECKED ? n : CHECKED;
    real        *values = m->params[unit][i];
    size_t       k;

    *error = *size = 0;
    for (k = 0; k < checked; k++) {
        const size_t e    = k * n / checked;
        const real   kept = values[e];
        double       above, below, difference;

        values[e]  = kept + DIFFERENCE;
        above      = mean_loss(m);
        values[e]  = kept - DIFFERENCE;
        below      = mean_loss(m);
        values[e]  = kept;
        difference = (above - below) / (2 * DIFFERENCE) - m->grads[unit][i][e];
        *error += difference * difference;
        *size += m->grads[unit][i][e] * m->grads[unit][i][e];
    }
    *error = sqrt(*error);
    *size  = sqrt(*size);
}

static void gradients_agree_with_central_differences(void **state)
{
    size_t which, unit, i;

    (void)state;
    for (which = 0; which < N_CASES; which++) {
        test_model m;

        open_model(&m, which);
        run_backward(&m);
        for (unit = 0; unit < m.n_units; unit++) {
            for (i = 0; i < m.n_tensors[unit]; i++) {
                double error, size;

                compare_with_differences(&m, unit, i, &error, &size);
                print_message("%-24s norm %.3e, error %.1e of it\n", m.tensors[unit][i].name, size, error / size);
                assert_true(size > 0 && error <= TOLERANCE_F64 * size);
            }
        }
        close_model(&m);
    }
}

static void gradients_are_written_for_f32(void **state)
{
    FILE  *file = fopen(gradient_file, "wb");
    size_t which, unit, i;

    (void)state;
    assert_non_null(file);
    for (which = 0; which < N_CASES; which++) {
        test_model m;

        open_model(&m, which);
        run_backward(&m);
        for (unit = 0; unit < m.n_units; unit++) {
            for (i = 0; i < m.n_tensors[unit]; i++) {
                assert_int_equal(m.tensors[unit][i].elements,
                                 fwrite(m.grads[unit][i], sizeof(double), m.tensors[unit][i].elements, file));
            }
        }
        close_model(&m);
    }
    assert_int_equal(0, fclose(file));
}
#else
/* Reads the gradient of one tensor, as f64 has it, from `file`. */
static void compare_with_f64(const test_model *m, size_t unit, size_t i, FILE *file)
{
    const size_t n     = m->tensors[unit][i].elements;
    double       error = 0, size = 0;
    size_t       e;

    for (e = 0; e < n; e++) {
        double expected, difference;

        assert_int_equal(1, fread(&expected, sizeof expected, 1, file));
        difference = (double)m->grads[unit][i][e] - expected;
        error += difference * difference;
        size += expected * expected;
    }
    print_message("%-24s error %.1e of the norm\n", m->tensors[unit][i].name, sqrt(error / size));
    assert_true(size > 0 && sqrt(error) <= TOLERANCE_F32 * sqrt(size));
}

static void gradients_agree_with_f64(void **state)
{
    FILE  *file = fopen(gradient_file, "rb");
    size_t which, unit, i;

    (void)state;
    assert_non_null(file);
    for (which = 0; which < N_CASES; which++) {
        test_model m;

        open_model(&m, which);
        run_backward(&m);
        for (unit = 0; unit < m.n_units; unit++) {
            for (i = 0; i < m.n_tensors[unit]; i++) {
                compare_with_f64(&m, unit, i, file);
            }
        }
        close_model(&m);
    }
    fclose(file);
}

static void gelu_is_exact_to_rounding_everywhere(void **state)
{
    int i;

    (void)state;
    for (i = -4000; i <= 4000; i++) {
        const real   in = (real)i / 1000;
        const double x = (double)in, y = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
        const double expected = x / (1 + exp(-2 * y));
        real         out;

        gpt_gelu(1, &in, &out);
        assert_true(fabs((double)out - expected) <= 2e-6 * fabs(expected));
    }
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_names_and_shapes_are_hugging_faces),
        cmocka_unit_test(oversized_models_are_refused),
        cmocka_unit_test(a_text_continued_gives_the_logits_of_the_whole),
#ifdef GPT_DOUBLE
        cmocka_unit_test(gradients_agree_with_central_differences),
        cmocka_unit_test(gradients_are_written_for_f32),
#else
        cmocka_unit_test(gelu_is_exact_to_rounding_everywhere),
        cmocka_unit_test(gradients_agree_with_f64),
#endif
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE-OF-GRADIENTS\n", argv[0]);
        return 2;
    }
    gradient_file = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
