/*
 * Norms of known gradients: the same constants for any number of ranks and of nodes, strategy, instruction set and way to
 * accumulate, and on a GPU. They were computed with Python's fractions.
 *
 * Each element's gradient comes from one rank in one pass; the others give 0. Divided by so few ranks and multiplied again, it is
 * what it was, since its last bit is 0 (Goldberg 1991, theorem 7).
 */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "lib/context/context.h"
#include "tests/shard/small_model.h"

typedef struct known_gradients {
    uint32_t lowest, exponents; /* of f32, with its bias */
    double   norm, largest;
} known_gradients;

static const known_gradients KNOWN[] = {
    {118, 9, 0x1.043221952647ap+4, 0x1.ff700c0000000p-1},     /* some octaves, as gradients have */
    {8, 247, 0x1.fee659f6d6780p+129, 0x1.f9ebd00000000p+127}, /* and nearly all that there are */
};

enum { N_KNOWN = sizeof KNOWN / sizeof *KNOWN };

static float known_gradient(const known_gradients *known, size_t i)
{
    uint32_t bits = (uint32_t)i * 2654435761u;
    float    value;

    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    bits = (bits & 0x807ffffeu) | (known->lowest + (bits >> 9) % known->exponents) << 23;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Pass `pass` of `passes`. */
static void give_gradients(small_model *m, const known_gradients *known, size_t pass, size_t passes)
{
    const size_t rank = (size_t)fsdp_rank(m->ctx), size = (size_t)fsdp_size(m->ctx);
    size_t       first = 0;

    for (size_t u = 0; u < N_UNITS; u++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m->units[u]));
        for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; first += tensor_elements(t), t++) {
            static float mine[MOST_ELEMENTS];

            for (size_t i = 0; i < tensor_elements(t); i++) {
                const bool here = (first + i) % size == rank && (first + i) / 7 % passes == pass;

                mine[i] = here ? known_gradient(known, first + i) : 0.0F;
            }
            memcpy(fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]), mine, tensor_elements(t) * sizeof *mine);
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m->units[u]));
    }
}

static void expect_known_norms(small_model *m)
{
    double norm, largest;

    for (size_t k = 0; k < N_KNOWN; k++) {
        for (size_t passes = 1; passes <= 3; passes++) {
            for (size_t pass = 0; pass < passes; pass++) {
                assert_int_equal(FSDP_OK, fsdp_model_set_sync(m->model, pass + 1 == passes || pass == 0));
                give_gradients(m, &KNOWN[k], pass, passes);
            }
            assert_int_equal(FSDP_OK, fsdp_clip_grad_norm_inf(m->model, (double)INFINITY, &largest));
            assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, (double)INFINITY, &norm));
            assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m->model));
            if (norm != KNOWN[k].norm || largest != KNOWN[k].largest) {
                fail_msg("gradients %zu, %zu passes, instruction set %d: norms %a and %a instead of %a and %a", k,
                         passes, (int)m->ctx->config.isa, norm, largest, KNOWN[k].norm, KNOWN[k].largest);
            }
        }
    }
}

static void check(fsdp_strategy strategy, int node_size, fsdp_isa isa)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_config        config;
    small_model        m;

    fsdp_config_init(&config);
    config.node_size         = node_size;
    config.isa               = isa;
    options.strategy         = strategy;
    options.group_size       = fsdp_test_size() % 2 == 0 ? fsdp_test_size() / 2 : fsdp_test_size();
    options.local_gradients  = 1;
    options.gradient_divisor = 1.0;
    small_model_build(&m, MPI_COMM_WORLD, &config, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    expect_known_norms(&m);
    small_model_close(&m);
}

static void norms_are_the_same_for_any_strategy_and_nodes(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int node_size = 0; node_size <= 2; node_size++) {
            check((fsdp_strategy)strategy, node_size, FSDP_ISA_AUTO);
        }
    }
}

static void norms_are_the_same_for_any_instruction_set(void **state)
{
    static const char *const NAMES[] = {"auto", "scalar", "avx2", "avx512", "neon"}; /* by fsdp_isa */

    (void)state;
    for (int isa = 0; isa <= FSDP_ISA_NEON; isa++) {
        if (fsdpi_kernels_find(NAMES[isa]) != NULL) {
            check(FSDP_FULL_SHARD, 0, (fsdp_isa)isa);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_the_same_for_any_strategy_and_nodes),
        cmocka_unit_test(norms_are_the_same_for_any_instruction_set),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
