/*
 * A layer of 03_gpt divided over ranks, in f64: outputs and gradients are those of the layer on one rank, whatever is divided and
 * kept; sequence parallelism and recomputation change no bit; and what is kept is what the formula says, to the byte.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/03_gpt/gpt_layer.h"
#include "tests/support/mpi_test.h"

enum { BATCH = 2, CONTEXT = 72, WIDTH = 32, HEADS = 4, N_WAYS = 6 };

static const gpt_config config = {.layers = 1, .heads = HEADS, .width = WIDTH, .context = CONTEXT};

/* Whole tensors, and this rank's parts of them. */
typedef struct parts {
    gpt_tensor about[GPT_N_BLOCK_TENSORS];
    real      *whole[GPT_N_BLOCK_TENSORS], *part[GPT_N_BLOCK_TENSORS], *grad[GPT_N_BLOCK_TENSORS];
    size_t     count[GPT_N_BLOCK_TENSORS]; /* of the part */
} parts;

/* Of each tensor, blocks of columns (rows, of vectors and of what is divided by inputs) that are divided by themselves; 0: whole. */
static size_t blocks_of(size_t tensor)
{
    switch (tensor) {
    case GPT_ATTN_WEIGHT:
    case GPT_ATTN_BIAS:
        return 3;
    case GPT_FC_WEIGHT:
    case GPT_FC_BIAS:
    case GPT_ATTN_PROJ_WEIGHT:
    case GPT_PROJ_WEIGHT:
        return 1;
    default:
        return 0;
    }
}

static int is_by_columns(size_t tensor)
{
    return tensor == GPT_ATTN_WEIGHT || tensor == GPT_FC_WEIGHT;
}

static real draw(size_t i)
{
    const double x = sin((double)i * 12.9898) * 43758.5453;

    return (real)(0.3 * (2 * (x - floor(x)) - 1));
}

/* The place in the whole tensor of element `i` of this rank's part. */
static size_t place_of(const gpt_tensor *t, size_t tensor, size_t ranks, size_t rank, size_t i)
{
    const size_t blocks = blocks_of(tensor), columns = t->n_dims == 2 ? t->shape[1] : 1;

    if (!blocks) {
        return i;
    }
    const size_t length = is_by_columns(tensor) ? columns : t->elements; /* of what is divided, as one row */
    const size_t run = length / blocks / ranks, mine = i % (length / ranks);

    return i / (length / ranks) * length + mine / run * (length / blocks) + rank * run + mine % run;
}

static void make_parts(parts *p, size_t ranks, size_t rank)
{
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        gpt_block_tensor(&config, 0, t, &p->about[t]);
        p->count[t] = p->about[t].elements / (blocks_of(t) ? ranks : 1);
        p->whole[t] = calloc(p->about[t].elements, sizeof(real));
        p->part[t]  = calloc(p->count[t], sizeof(real));
        p->grad[t]  = calloc(p->count[t], sizeof(real));
        assert_true(p->whole[t] && p->part[t] && p->grad[t]);
        for (size_t i = 0; i < p->about[t].elements; i++) {
            p->whole[t][i] = (real)p->about[t].mean + draw(1000 * t + i);
        }
        for (size_t i = 0; i < p->count[t]; i++) {
            p->part[t][i] = p->whole[t][place_of(&p->about[t], t, ranks, rank, i)];
        }
    }
}

static void free_parts(parts *p)
{
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        free(p->whole[t]);
        free(p->part[t]);
        free(p->grad[t]);
    }
}

/* What a pass gives: this rank's rows of output and gradient of the input, and all gradients of parameters. */
typedef struct result {
    real  *out, *d_in, *grads[GPT_N_BLOCK_TENSORS];
    size_t own;
} result;

/* The memory that a division takes, as 03_gpt has it. */
static real *lay_out(const gpt_division *d, gpt_kept *kept, gpt_owed *owed, gpt_workspace *work)
{
    gpt_kept      unused_kept;
    gpt_owed      unused_owed;
    gpt_workspace unused_work;
    const size_t  n = gpt_kept_cut(&unused_kept, NULL, d, BATCH, 1) + gpt_owed_cut(&unused_owed, NULL, d, BATCH) +
                     gpt_workspace_cut(&unused_work, NULL, d, BATCH);
    real  *storage = calloc(n, sizeof(real));
    size_t used    = 0;

    assert_non_null(storage);
    used += gpt_kept_cut(kept, storage, d, BATCH, 1);
    used += gpt_owed_cut(owed, storage + used, d, BATCH);
    used += gpt_workspace_cut(work, storage + used, d, BATCH);
    assert_int_equal(n, used);
    return storage;
}

static void copy_grads(const parts *p, result *r)
{
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        r->grads[t] = malloc(p->count[t] * sizeof(real));
        assert_non_null(r->grads[t]);
        memcpy(r->grads[t], p->grad[t], p->count[t] * sizeof(real));
        memset(p->grad[t], 0, p->count[t] * sizeof(real));
    }
}

/* Forward, and backward with a gradient of the output that is drawn as well. */
static void pass(const gpt_division *d, const parts *p, result *r)
{
    const size_t       own = gpt_division_own_rows(d, BATCH), count = own * WIDTH;
    const size_t       first  = d->sequence_parallel ? (size_t)fsdp_rank(d->tp) * count : 0;
    const real *const *params = (const real *const *)p->part;
    gpt_kept           kept;
    gpt_owed           owed;
    gpt_workspace      work;
    real              *storage = lay_out(d, &kept, &owed, &work);

    *r = (result){.out = malloc(count * sizeof(real)), .d_in = malloc(count * sizeof(real)), .own = own};
    assert_true(r->out && r->d_in);
    for (size_t i = 0; i < count; i++) {
        kept.own[i] = 3 * draw(7 + first + i);
        r->d_in[i]  = draw(70007 + first + i);
    }
    assert_int_equal(FSDP_OK, gpt_layer_forward(d, &work, BATCH, params, &kept, r->out));
    work.again_of = NULL; /* as if other layers had come between */
    assert_int_equal(FSDP_OK, gpt_layer_backward_input(d, &work, BATCH, params, &kept, &owed, r->d_in));
    assert_int_equal(FSDP_OK, gpt_layer_backward_weight(d, &work, BATCH, params, &kept, &owed, p->grad));
    copy_grads(p, r);
    free(storage);
}

static void free_result(result *r)
{
    free(r->out);
    free(r->d_in);
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        free(r->grads[t]);
    }
}

static gpt_division division_of(fsdp_context *tp, gpt_profile *profile, size_t way)
{
    return (gpt_division){.config            = config,
                          .ranks             = (size_t)fsdp_size(tp),
                          .sequence_parallel = way % 2 == 1,
                          .recompute         = (gpt_recompute)(way / 2),
                          .tp                = tp,
                          .profile           = profile};
}

/* Under sequence parallelism a result has a part of the rows. */
static void assert_same_rows(const real *all, const real *mine, const gpt_division *d, size_t own)
{
    const size_t first = d->sequence_parallel ? (size_t)fsdp_rank(d->tp) * own * WIDTH : 0;

    assert_memory_equal(all + first, mine, own * WIDTH * sizeof(real));
}

static void sequence_parallelism_and_recomputation_change_no_bit(void **state)
{
    gpt_profile  profile;
    parts        p;
    result       plain, other;
    gpt_division d = division_of(*state, &profile, 0);

    gpt_profile_start(&profile);
    make_parts(&p, d.ranks, (size_t)fsdp_rank(d.tp));
    pass(&d, &p, &plain);
    for (size_t way = 1; way < N_WAYS; way++) {
        d = division_of(*state, &profile, way);
        pass(&d, &p, &other);
        assert_same_rows(plain.out, other.out, &d, other.own);
        assert_same_rows(plain.d_in, other.d_in, &d, other.own);
        for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
            assert_memory_equal(plain.grads[t], other.grads[t], p.count[t] * sizeof(real));
        }
        free_result(&other);
    }
    free_result(&plain);
    free_parts(&p);
}

static void assert_near(const real *a, const real *b, size_t count, const char *what)
{
    double largest = 0, difference = 0;

    for (size_t i = 0; i < count; i++) {
        largest    = fmax(largest, fabs((double)a[i]));
        difference = fmax(difference, fabs((double)(a[i] - b[i])));
    }
    if (!(difference <= 1e-12 * largest)) {
        fail_msg("%s differs by %g of %g", what, difference, largest);
    }
}

/* With a context of one rank, on every rank: `grads` are whole. */
static void pass_on_one_rank(const parts *p, real *out, real *d_in, real **grads)
{
    fsdp_context *alone;
    gpt_profile   profile;
    result        r;
    parts         all = *p;

    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &alone));
    gpt_profile_start(&profile);
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        all.part[t]  = all.whole[t];
        all.grad[t]  = grads[t];
        all.count[t] = all.about[t].elements;
    }
    const gpt_division d = division_of(alone, &profile, 0);

    pass(&d, &all, &r);
    memcpy(out, r.out, r.own * WIDTH * sizeof(real));
    memcpy(d_in, r.d_in, r.own * WIDTH * sizeof(real));
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        memcpy(grads[t], r.grads[t], all.count[t] * sizeof(real));
    }
    free_result(&r);
    assert_int_equal(FSDP_OK, fsdp_finalize(alone));
}

static void a_divided_layer_is_that_of_one_rank(void **state)
{
    enum { COUNT = BATCH * CONTEXT * WIDTH };
    static real  out[COUNT], d_in[COUNT];
    gpt_profile  profile;
    parts        p;
    result       r;
    real        *grads[GPT_N_BLOCK_TENSORS];
    gpt_division d = division_of(*state, &profile, 0);

    gpt_profile_start(&profile);
    make_parts(&p, d.ranks, (size_t)fsdp_rank(d.tp));
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        grads[t] = calloc(p.about[t].elements, sizeof(real));
        assert_non_null(grads[t]);
    }
    pass_on_one_rank(&p, out, d_in, grads);
    pass(&d, &p, &r);
    assert_near(out, r.out, COUNT, "the output");
    assert_near(d_in, r.d_in, COUNT, "the gradient of the input");
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        real *mine = malloc(p.count[t] * sizeof(real));

        assert_non_null(mine);
        for (size_t i = 0; i < p.count[t]; i++) {
            mine[i] = grads[t][place_of(&p.about[t], t, d.ranks, (size_t)fsdp_rank(d.tp), i)];
        }
        assert_near(mine, r.grads[t], p.count[t], p.about[t].name);
        free(mine);
        free(grads[t]);
    }
    free_result(&r);
    free_parts(&p);
}

/* The sum of an output weighted by the gradient that pass() begins with, on one rank. */
static double weighted_output(const parts *p, const gpt_division *d)
{
    result r;
    double sum = 0;

    pass(d, p, &r);
    for (size_t i = 0; i < r.own * WIDTH; i++) {
        sum += (double)r.out[i] * (double)draw(70007 + i);
    }
    free_result(&r);
    return sum;
}

/* Every 97th element of each tensor of this rank, on all ranks together so that they stay in step. */
static void gradients_are_those_of_differences(void **state)
{
    const double step = 1e-5;
    gpt_profile  profile;
    parts        p;
    result       r;
    gpt_division d = division_of(*state, &profile, 0);

    gpt_profile_start(&profile);
    make_parts(&p, d.ranks, (size_t)fsdp_rank(d.tp));
    pass(&d, &p, &r);
    for (size_t t = 0; t < GPT_N_BLOCK_TENSORS; t++) {
        if (!blocks_of(t)) {
            continue; /* what every rank has must stay the same on all */
        }
        for (size_t i = 5 % p.count[t]; i < p.count[t]; i += p.count[t] / 3 + 1) {
            const real was = p.part[t][i];
            double     difference;

            p.part[t][i] = was + (fsdp_rank(d.tp) == 0 ? (real)step : 0);
            difference   = weighted_output(&p, &d);
            p.part[t][i] = was - (fsdp_rank(d.tp) == 0 ? (real)step : 0);
            difference   = (difference - weighted_output(&p, &d)) / (2 * step);
            p.part[t][i] = was;
            if (fsdp_rank(d.tp) == 0 &&
                !(fabs(difference - (double)r.grads[t][i]) <= 1e-6 * fmax(1, fabs(difference)))) {
                fail_msg("%s, element %zu: %g by differences, %g", p.about[t].name, i, difference,
                         (double)r.grads[t][i]);
            }
        }
    }
    free_result(&r);
    free_parts(&p);
}

static void what_is_kept_is_what_the_formula_says(void **state)
{
    gpt_profile profile;

    for (size_t way = 0; way < N_WAYS; way++) {
        const gpt_division         d     = division_of(*state, &profile, way);
        const gpt_activation_shape shape = gpt_division_shape(&d, BATCH);
        gpt_kept                   kept;

        assert_int_equal(gpt_activations_sum(gpt_activation_list, gpt_activation_list_length, &shape),
                         gpt_kept_cut(&kept, NULL, &d, BATCH, 1) * sizeof(real));
    }
}

/* The layer of Korthikanti et al. (2022), in 16 bits, with masks of dropout of a byte. */
static const gpt_activation published[] = {
    {"input, of the first norm", GPT_PER_WIDTH, 1, 2, GPT_DIVIDED_BY_ROWS, 1},
    {"input of the attention", GPT_PER_WIDTH, 1, 2, GPT_DIVIDED_BY_ROWS, 0},
    {"queries and keys", GPT_PER_WIDTH, 2, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"softmax", GPT_PER_SCORES, 1, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"mask behind it", GPT_PER_SCORES, 1, 1, GPT_DIVIDED_BY_PARTS, 0},
    {"probabilities", GPT_PER_SCORES, 1, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"values", GPT_PER_WIDTH, 1, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"input of the projection", GPT_PER_WIDTH, 1, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"mask behind it", GPT_PER_WIDTH, 1, 1, GPT_DIVIDED_BY_ROWS, 0},
    {"input of the second norm", GPT_PER_WIDTH, 1, 2, GPT_DIVIDED_BY_ROWS, 0},
    {"input of the MLP", GPT_PER_WIDTH, 1, 2, GPT_DIVIDED_BY_ROWS, 0},
    {"before GELU", GPT_PER_WIDTH, 4, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"behind GELU", GPT_PER_WIDTH, 4, 2, GPT_DIVIDED_BY_PARTS, 0},
    {"mask behind it", GPT_PER_WIDTH, 1, 1, GPT_DIVIDED_BY_ROWS, 0},
};

/* Theirs, of the model of 22 billion parameters on 8 ranks. */
static void the_formula_has_the_published_percentages(void **state)
{
    static const struct {
        int    sequence_parallel, without_scores, input_only;
        double percentage;
    } cases[]                  = {{1, 0, 0, 66.84}, {0, 1, 0, 49.42}, {1, 1, 0, 16.18}, {0, 0, 1, 7.64}};
    gpt_activation_shape shape = {
        .rows = 4 * 2048, .width = 6144, .heads = 64, .context = 2048, .ranks = 8, .multiple = 1};
    const size_t n   = sizeof published / sizeof published[0];
    const double all = (double)gpt_activations_sum(published, n, &shape);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        shape.sequence_parallel = cases[i].sequence_parallel;
        shape.without_scores    = cases[i].without_scores;
        shape.input_only        = cases[i].input_only;
        const double found      = 100 * (double)gpt_activations_sum(published, n, &shape) / all;
        printf("published %.2f%%, by formula %.2f%%\n", cases[i].percentage, found);
        assert_true(fabs(found - cases[i].percentage) <= 0.2);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequence_parallelism_and_recomputation_change_no_bit),
        cmocka_unit_test(a_divided_layer_is_that_of_one_rank),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(what_is_kept_is_what_the_formula_says),
        cmocka_unit_test(the_formula_has_the_published_percentages),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
