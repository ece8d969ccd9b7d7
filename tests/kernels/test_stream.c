/** @file Copies through the caches and past them: every byte, and no other. */
#include "kernel_test.h"

#include <string.h>

#include "kernels/host/walk.h"

enum { IN, OUT, MOST_PAGES = 4 };

static void fill_with_bytes(unsigned char *x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        x[i] = (unsigned char)random_bits();
    }
}

static void check(const fsdpi_kernels *kernels, size_t bytes, ptrdiff_t in_offset, ptrdiff_t out_offset)
{
    unsigned char *in  = fenced_array(IN, bytes, in_offset);
    unsigned char *out = fenced_array(OUT, bytes, out_offset);

    fill_with_bytes(in, bytes);
    for (int way = 0; way < 4; way++) {
        const int past_caches = way % 2, pages = way < 2 ? 1 : MOST_PAGES;

        atomic_store(&fsdpi_pages_walked, (size_t)pages);
        memset(out, 0, bytes);
        (past_caches ? kernels->stream : kernels->copy)(out, in, bytes);
        if (memcmp(in, out, bytes) != 0) {
            fail_msg("%s, %s the caches, %d pages at once: %zu bytes from offset %td to offset %td differ",
                     kernels->name, past_caches ? "past" : "through", pages, bytes, in_offset, out_offset);
        }
        assert_fences_stand();
    }
}

static void for_each_table(void (*body)(const fsdpi_kernels *))
{
    body(&fsdpi_kernels_scalar);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        body(tables_under_test[t]);
    }
}

static void check_lengths(const fsdpi_kernels *kernels)
{
    for (const size_t *bytes = tail_counts; *bytes != SIZE_MAX; bytes++) {
        check(kernels, *bytes, 0, 0);
        check(kernels, *bytes, 3, 29);
    }
    check(kernels, MAX_ARRAY_BYTES, 0, 0);
    check(kernels, MAX_ARRAY_BYTES - 1, 1, 63);
}

static void any_number_of_bytes_is_copied(void **state)
{
    (void)state;
    for_each_table(check_lengths);
}

static void check_offsets(const fsdpi_kernels *kernels)
{
    for (ptrdiff_t in = 0; in < 64; in += 7) {
        for (ptrdiff_t out = 0; out < 64; out++) {
            check(kernels, 389, in, out);
        }
    }
}

static void any_alignment_is_served(void **state)
{
    (void)state;
    for_each_table(check_offsets);
}

static void check_ends(const fsdpi_kernels *kernels)
{
    for (size_t bytes = 0; bytes <= 200; bytes++) {
        check(kernels, bytes, AT_END, AT_END);
        check(kernels, bytes, AT_END, 5);
        check(kernels, bytes, 5, AT_END);
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for_each_table(check_ends);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_bytes_is_copied),
        cmocka_unit_test(any_alignment_is_served),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
    };

    return kernel_test_main(argc, argv, tests);
}
