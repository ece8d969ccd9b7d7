/** @file The reduction into several outputs, past the caches or through them, against the reference. */
#include "kernel_test.h"

#include <stdio.h>
#include <string.h>

#include "kernels/host/walk.h"

enum { MAX_IN = 5, MAX_OUT = 4, FIRST_OUT = MAX_IN, EXPECTED = MAX_IN + MAX_OUT };
enum { FEW_PAGES = 2, PAGE_BYTES = 4096 };

static const size_t N_INS[]  = {1, 2, 3, MAX_IN};
static const size_t COUNTS[] = {0, 1, 3, 15, 16, 31, 33, 64, 127, 130, 257, 1031, 2053, 4096};

enum { N_OF_N_INS = sizeof N_INS / sizeof N_INS[0], N_COUNTS = sizeof COUNTS / sizeof COUNTS[0] };

static const void *in[MAX_IN];
static void       *out[MAX_OUT], *expected;

/* How many outputs, and how many of them go past the caches. */
static const struct {
    size_t n, n_past;
} OUTPUTS[] = {{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 3}, {4, 0}, {4, 1}, {4, 4}};

enum { N_OUTPUTS = sizeof OUTPUTS / sizeof OUTPUTS[0] };

typedef struct parameters {
    const fsdpi_kernels *kernels;
    size_t               n_in;
    fsdp_dtype           dtype;
    fsdp_redop           op;
} parameters;

/* Each at another offset of `unit` BYTES; and what the reference makes of them. */
static void make_inputs(const parameters *p, size_t count, size_t offset, size_t unit)
{
    const size_t bytes = element_bytes(p->dtype);

    for (size_t r = 0; r < p->n_in; r++) {
        void *x = fenced_array(r, count * bytes, (ptrdiff_t)((offset + 3 * r) % 17 * unit));

        fill_with_any_values(x, count, p->dtype);
        in[r] = x;
    }
    expected = fenced_array(EXPECTED, count * bytes, 0);
    fsdpi_kernels_scalar.reduce(expected, in, p->n_in, count, p->dtype, p->op, 7);
}

/* The same; where `unit` is 0, before memory that must not be touched. */
static void make_outputs(const parameters *p, size_t n_out, size_t count, size_t offset, size_t unit)
{
    const size_t bytes = element_bytes(p->dtype);

    for (size_t r = 0; r < n_out; r++) {
        const ptrdiff_t shift = (ptrdiff_t)((offset + 5 * r) % 17 * unit);
        out[r]                = fenced_array(FIRST_OUT + r, count * bytes, unit == 0 ? AT_END : shift);
    }
}

static void check(const parameters *p, size_t n_out, size_t n_past, size_t count)
{
    char what[120];

    (void)snprintf(what, sizeof what, "%s, type %d, reduction %d, %zu inputs, %zu outputs, %zu past the caches",
                   p->kernels->name, p->dtype, p->op, p->n_in, n_out, n_past);
    p->kernels->reduce_into(out, n_out, in, p->n_in, count, p->dtype, p->op, 7, n_past);
    for (size_t r = 0; r < n_out; r++) {
        assert_same_or_both_nan(expected, out[r], count, p->dtype, what);
    }
    assert_fences_stand();
}

/* With each number of outputs, for the same inputs. */
static void check_outputs(const parameters *p, size_t count, size_t offset, size_t unit)
{
    for (size_t o = 0; o < N_OUTPUTS; o++) {
        make_outputs(p, OUTPUTS[o].n, count, offset, unit);
        check(p, OUTPUTS[o].n, OUTPUTS[o].n_past, count);
    }
}

static void for_each_operation(const fsdpi_kernels *kernels, void (*body)(const parameters *))
{
    for (int dtype = 0; dtype < FSDP_N_DTYPES; dtype++) {
        for (int op = 0; op < FSDP_N_REDOPS; op++) {
            for (size_t i = 0; i < N_OF_N_INS; i++) {
                body(&(parameters){kernels, N_INS[i], (fsdp_dtype)dtype, (fsdp_redop)op});
            }
        }
    }
}

/* Calls `body` for each table, the reference among them, and each combination of parameters. */
static void for_each_case(void (*body)(const parameters *))
{
    atomic_store(&fsdpi_pages_walked, 1);
    for_each_operation(&fsdpi_kernels_scalar, body);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for_each_operation(tables_under_test[t], body);
    }
}

static size_t most_elements(const parameters *p)
{
    return MAX_ARRAY_BYTES / element_bytes(p->dtype);
}

/* Those that fill pages are reduced page by page, and several pages at once. */
static void check_counts(const parameters *p)
{
    for (size_t c = 0; c < N_COUNTS && COUNTS[c] <= most_elements(p); c++) {
        make_inputs(p, COUNTS[c], c, element_bytes(p->dtype));
        check_outputs(p, COUNTS[c], 0, element_bytes(p->dtype));
        if (COUNTS[c] * element_bytes(p->dtype) >= FEW_PAGES * PAGE_BYTES) {
            atomic_store(&fsdpi_pages_walked, FEW_PAGES);
            check_outputs(p, COUNTS[c], 0, element_bytes(p->dtype));
            atomic_store(&fsdpi_pages_walked, 1);
        }
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
            check_outputs(p, 307, 16 - offset, *unit);
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

    for (size_t o = 0; o < N_OUTPUTS; o++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            make_inputs(p, counts[c], c, element_bytes(p->dtype));
            make_outputs(p, OUTPUTS[o].n, counts[c], c, element_bytes(p->dtype));
            for (size_t r = 0; r < OUTPUTS[o].n && r < p->n_in; r++) {
                out[r] = (void *)(uintptr_t)in[p->n_in - 1 - r]; /* NOLINT(performance-no-int-to-ptr) */
            }
            check(p, OUTPUTS[o].n, OUTPUTS[o].n_past, counts[c]);
        }
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
        check_outputs(p, count, 0, 0);
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
