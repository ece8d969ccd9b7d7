/** @file What is mapped, on systems with pages of any size. */
#include <errno.h>
#include <sys/mman.h>

#include "lib/device/mapped.h"
#include "tests/support/unit_test.h"

enum { SMALL = 4096, LARGE = 65536, REGION = 2 << 20 };

/* A system that has one range of addresses mapped. */
static struct {
    uintptr_t page_bytes, begin, end;
    int       times_asked;
} one_range;

/* In place of the C library's: as Linux, which takes addresses of whole pages only. */
int mincore(void *address, size_t bytes, unsigned char *resident)
{
    const uintptr_t at = (uintptr_t)address;

    one_range.times_asked++;
    if (at % one_range.page_bytes != 0) {
        errno = EINVAL;
        return -1;
    }
    if (at < one_range.begin || bytes > one_range.end - at || at >= one_range.end) {
        errno = ENOMEM;
        return -1;
    }
    for (size_t i = 0; i < (bytes + one_range.page_bytes - 1) / one_range.page_bytes; i++) {
        resident[i] = 1;
    }
    return 0;
}

static bool is_mapped(fsdpi_mapped *known, uintptr_t address, size_t bytes)
{
    return fsdpi_is_mapped(known, (const void *)address, bytes); /* NOLINT(performance-no-int-to-ptr) */
}

static fsdpi_mapped open_system(uintptr_t page_bytes, uintptr_t begin, uintptr_t bytes)
{
    fsdpi_mapped known;

    one_range.page_bytes  = page_bytes;
    one_range.begin       = begin;
    one_range.end         = begin + bytes;
    one_range.times_asked = 0;
    fsdpi_mapped_open(&known, page_bytes);
    return known;
}

/* A page in the middle of a region. */
static fsdpi_mapped open_page(uintptr_t page_bytes)
{
    return open_system(page_bytes, (uintptr_t)7 << 20, page_bytes);
}

static void memory_beside_the_page_is_not_mapped_whatever_the_size_of_pages(void **state)
{
    (void)state;
    for (uintptr_t page = SMALL; page <= LARGE; page *= 2) {
        fsdpi_mapped    known = open_page(page);
        const uintptr_t begin = one_range.begin, end = one_range.end;

        assert_true(is_mapped(&known, begin, page));
        assert_true(is_mapped(&known, begin + 1, 1));
        assert_true(is_mapped(&known, end - 1, 1));
        assert_false(is_mapped(&known, begin - 1, 1));
        assert_false(is_mapped(&known, begin - 1, 2));
        assert_false(is_mapped(&known, end, 1));
        assert_false(is_mapped(&known, end + SMALL, 1));
        assert_false(is_mapped(&known, end - 1, 2));
        assert_false(is_mapped(&known, begin, page + SMALL + 1));
    }
}

static void memory_beside_regions_is_not_mapped(void **state)
{
    fsdpi_mapped    known = open_system(SMALL, 3 * (uintptr_t)REGION - SMALL, 2 * (uintptr_t)REGION);
    const uintptr_t begin = one_range.begin, end = one_range.end;

    (void)state;
    assert_true(is_mapped(&known, begin, end - begin));
    assert_true(is_mapped(&known, begin + SMALL, REGION));
    assert_false(is_mapped(&known, begin - 1, 1));
    assert_false(is_mapped(&known, begin - 1, SMALL + 1));
    assert_false(is_mapped(&known, end, 1));
    assert_false(is_mapped(&known, begin + REGION, REGION + 1));
}

static void the_first_page_is_never_mapped(void **state)
{
    fsdpi_mapped known = open_system(LARGE, 0, LARGE);

    (void)state;
    assert_false(is_mapped(&known, 8, 1));
    assert_false(is_mapped(&known, LARGE - 1, 1));
}

static void nor_is_all_of_the_first_region(void **state)
{
    fsdpi_mapped known = open_system(SMALL, 0, REGION);

    (void)state;
    assert_true(is_mapped(&known, SMALL, SMALL));
    assert_false(is_mapped(&known, SMALL - 1, SMALL));
}

static int times_asked(fsdpi_mapped *known, uintptr_t begin, uintptr_t end)
{
    one_range.times_asked = 0;
    for (uintptr_t at = begin; at < end; at += SMALL) {
        assert_true(is_mapped(known, at, SMALL));
    }
    return one_range.times_asked;
}

static void the_system_is_asked_once_for_a_page(void **state)
{
    fsdpi_mapped known = open_page(LARGE);

    (void)state;
    assert_int_not_equal(0, times_asked(&known, one_range.begin, one_range.end));
    assert_int_equal(0, times_asked(&known, one_range.begin, one_range.end));
    fsdpi_mapped_forget(&known);
    assert_int_not_equal(0, times_asked(&known, one_range.begin, one_range.end));
}

static void the_system_is_asked_once_for_a_region(void **state)
{
    enum { REGIONS = 5 };
    fsdpi_mapped known = open_system(SMALL, 7 * (uintptr_t)REGION, REGIONS * (uintptr_t)REGION);

    (void)state;
    assert_int_equal(REGIONS, times_asked(&known, one_range.begin, one_range.end));
    assert_int_equal(0, times_asked(&known, one_range.begin, one_range.end));
    fsdpi_mapped_forget(&known);
    assert_int_equal(REGIONS, times_asked(&known, one_range.begin, one_range.end));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_beside_the_page_is_not_mapped_whatever_the_size_of_pages),
        cmocka_unit_test(memory_beside_regions_is_not_mapped),
        cmocka_unit_test(the_first_page_is_never_mapped),
        cmocka_unit_test(nor_is_all_of_the_first_region),
        cmocka_unit_test(the_system_is_asked_once_for_a_page),
        cmocka_unit_test(the_system_is_asked_once_for_a_region),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
