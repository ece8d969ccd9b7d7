/** @file What is mapped, on systems with pages of any size. */
#include <errno.h>
#include <sys/mman.h>

#include "lib/device/mapped.h"
#include "tests/support/unit_test.h"

enum { SMALL = 4096, LARGE = 65536 };

/* A system that has one page mapped. */
static struct {
    uintptr_t page_bytes, begin;
    int       times_asked;
} system_of_one_page;

/* In place of the C library's: as Linux, which takes addresses of whole pages only. */
int mincore(void *address, size_t bytes, unsigned char *resident)
{
    const uintptr_t at = (uintptr_t)address;

    system_of_one_page.times_asked++;
    if (at % system_of_one_page.page_bytes != 0) {
        errno = EINVAL;
        return -1;
    }
    if (at != system_of_one_page.begin || bytes > system_of_one_page.page_bytes) {
        errno = ENOMEM;
        return -1;
    }
    resident[0] = 1;
    return 0;
}

static bool is_mapped(fsdpi_pages *known, uintptr_t address, size_t bytes)
{
    return fsdpi_is_mapped(known, (const void *)address, bytes); /* NOLINT(performance-no-int-to-ptr) */
}

static fsdpi_pages open_system(uintptr_t page_bytes)
{
    fsdpi_pages known;

    system_of_one_page.page_bytes  = page_bytes;
    system_of_one_page.begin       = (uintptr_t)7 << 20;
    system_of_one_page.times_asked = 0;
    fsdpi_pages_open(&known, page_bytes);
    return known;
}

static void memory_beside_the_page_is_not_mapped_whatever_the_size_of_pages(void **state)
{
    (void)state;
    for (uintptr_t page = SMALL; page <= LARGE; page *= 2) {
        fsdpi_pages     known = open_system(page);
        const uintptr_t begin = system_of_one_page.begin, end = begin + page;

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

static void the_first_page_is_never_mapped(void **state)
{
    fsdpi_pages known = open_system(LARGE);

    (void)state;
    system_of_one_page.begin = 0;
    assert_false(is_mapped(&known, 8, 1));
    assert_false(is_mapped(&known, LARGE - 1, 1));
}

static void the_system_is_asked_once_for_a_page(void **state)
{
    fsdpi_pages known = open_system(LARGE);

    (void)state;
    assert_true(is_mapped(&known, system_of_one_page.begin, 1));
    system_of_one_page.times_asked = 0;
    for (uintptr_t i = 0; i < LARGE; i += SMALL) {
        assert_true(is_mapped(&known, system_of_one_page.begin + i, SMALL));
    }
    assert_int_equal(0, system_of_one_page.times_asked);
    fsdpi_pages_forget(&known);
    assert_true(is_mapped(&known, system_of_one_page.begin, 1));
    assert_int_not_equal(0, system_of_one_page.times_asked);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_beside_the_page_is_not_mapped_whatever_the_size_of_pages),
        cmocka_unit_test(the_first_page_is_never_mapped),
        cmocka_unit_test(the_system_is_asked_once_for_a_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
