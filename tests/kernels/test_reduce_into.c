/** @file The reduction into several outputs, past the caches or through them, against the reference. */
#include "kernel_test.h"

#include <stdio.h>
#include <string.h>

enum { MAX_IN = 5, MAX_OUT = 4, FIRST_OUT = MAX_IN, EXPECTED = MAX_IN + MAX_OUT };

static const size_t N_INS[]  = {1, 2, 3, MAX_IN};
static const size_t COUNTS[] = {0, 1, 3, 15, 16, 31, 33, 64, 127, 130, 257, 1031, 2053, 4096};

enum { N_OF_N_INS = sizeof N_INS / sizeof N_INS[0], N_COUNTS = sizeof COUNTS / sizeof COUNTS[0] };

static const void *in[MAX_IN];
static void       *out[MAX_OUT];

typedef struct parameters {
    const fsdpi_kernels *kernels;
    size_t               n_in, n_out;
    fsdp_dtype           dtype;
    fsdp_redop           op;
    size_t               n_past;
} parameters;

/* Each at another offset of `unit` BYTES. */
static void make_inputs(const parameters *p, size_t count, size_t offset, size_t unit)
{
    const size_t bytes = element_bytes(p->dtype);

    for (size_t r = 0; r < p->n_in; r++) {
        void *x = fenced_array(r, count * bytes, (ptrdiff_t)((offset + 3 * r) % 17 * unit));

        fill_with_any_values(x, count, p->dtype);
        in[r] = x;
    }
}

/* The same; where `unit` is 0, before memory that must not be touched. */
static void make_outputs(const parameters *p, size_t count, size_t offset, size_t unit)
{
    const size_t bytes = element_bytes(p->dtype);

    for (size_t r = 0; r < p->n_out; r++) {
        const ptrdiff_t shift = (ptrdiff_t)((offset + 5 * r) % 17 * unit);
        out[r]                = fenced_array(FIRST_OUT + r, count * bytes, unit == 0 ? AT_END : shift);
    }
}

/* Runs it; the reference has seen the inputs before. */
static void check(const parameters *p, size_t count)
{
    char  what[120];
    void *expected = fenced_array(EXPECTED, count * element_bytes(p->dtype), 0);

    (void)snprintf(what, sizeof what, "%s, type %d, reduction %d, %zu inputs, %zu outputs, %zu past the caches",
                   p->kernels->name, p->dtype, p->op, p->n_in, p->n_out, p->n_past);
    fsdpi_kernels_scalar.reduce(expected, in, p->n_in, count, p->dtype, p->op, 7);
    p->kernels->reduce_into(out, p->n_out, in, p->n_in, count, p->dtype, p->op, 7, p->n_past);
    for (size_t r = 0; r < p->n_out; r++) {
        assert_same_or_both_nan(expected, out[r], count, p->dtype, what);
    }
    assert_fences_stand();
}

static void for_each_operation(const fsdpi_kernels *kernels, void (*body)(const parameters *))
{
    for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
        for (int op = 0; op < FSDP_N_REDOPS; op++) {
            for (size_t i = 0; i < N_OF_N_INS; i++) {
                for (size_t n_out = 1; n_out <= MAX_OUT; n_out++) {
                    parameters p = {.kernels = kernels,
                                    .n_in    = N_INS[i],
                                    .n_out   = n_out,
                                    .dtype   = (fsdp_dtype)dtype,
                                    .op      = (fsdp_redop)op};
                    body(&p);
                    p.n_past = 1;
                    body(&p);
                    p.n_past = n_out;
                    body(&p);
                }
            }
        }
    }
}

/* Calls `body` for each table, the reference among them, and each combination of parameters. */
static void for_each_case(void (*body)(const parameters *))
{
    for_each_operation(&fsdpi_kernels_scalar, body);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for_each_operation(tables_under_test[t], body);
    }
}

static size_t most_elements(const parameters *p)
{
    return MAX_ARRAY_BYTES / element_bytes(p->dtype);
}

static void check_counts(const parameters *p)
{
    for (size_t c = 0; c < N_COUNTS && COUNTS[c] <= most_elements(p); c++) {
        make_inputs(p, COUNTS[c], c, element_bytes(p->dtype));
        make_outputs(p, COUNTS[c], 0, element_bytes(p->dtype));
        check(p, COUNTS[c]);
    }
}

static void every_output_is_the_reduction(void **state)
{
    (void)state;
    for_each_case(check_counts);
}

static void check_offsets(const parameters *p)
{
    for (const size_t *unit = units_of(p->dtype); *unit != 0; unit++) {
        for (size_t offset = 0; offset <= 16; offset++) {
            make_inputs(p, 307, offset, *unit);
            make_outputs(p, 307, 16 - offset, *unit);
            check(p, 307);
        }
    }
}

static void outputs_of_any_alignment_equal_the_reference(void **state)
{
    (void)state;
    for_each_case(check_offsets);
}

/* The last inputs are the first outputs, as in an allreduce in place. */
static void check_in_place(const parameters *p)
{
    static const size_t counts[] = {1, 7, 130, 521, 2053};

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        make_inputs(p, counts[c], c, element_bytes(p->dtype));
        make_outputs(p, counts[c], c, element_bytes(p->dtype));
        for (size_t r = 0; r < p->n_out && r < p->n_in; r++) {
            out[r] = (void *)(uintptr_t)in[p->n_in - 1 - r]; /* NOLINT(performance-no-int-to-ptr) */
        }
        check(p, counts[c]);
    }
}

static void outputs_may_be_inputs(void **state)
{
    (void)state;
    for_each_case(check_in_place);
}

static void check_ends(const parameters *p)
{
    for (size_t count = 0; count <= 70; count += 3) {
        make_inputs(p, count, 0, element_bytes(p->dtype));
        make_outputs(p, count, 0, 0);
        check(p, count);
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for_each_case(check_ends);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_is_the_reduction),
        cmocka_unit_test(outputs_of_any_alignment_equal_the_reference),
        cmocka_unit_test(outputs_may_be_inputs),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
    };

    return kernel_test_main(argc, argv, tests);
}
