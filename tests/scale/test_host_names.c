/* The names of the hosts of made-up worlds: each is what it was, and those of 10^5 nodes take three bytes each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/node/host_names.h"
#include "tests/support/unit_test.h"

typedef void (*naming)(int node, char name[FSDPI_HOST_BYTES]);

static void numbered(int node, char name[FSDPI_HOST_BYTES])
{
    (void)snprintf(name, FSDPI_HOST_BYTES, "nid%06d", node + 1);
}

static void numbered_within(int node, char name[FSDPI_HOST_BYTES])
{
    (void)snprintf(name, FSDPI_HOST_BYTES, "x%04dc%ds%d-ib", node / 64, node / 8 % 8, node % 8);
}

static void without_zeros(int node, char name[FSDPI_HOST_BYTES])
{
    (void)snprintf(name, FSDPI_HOST_BYTES, "node%d", node);
}

/* What one begins with another ends with. */
static void repeated(int node, char name[FSDPI_HOST_BYTES])
{
    (void)snprintf(name, FSDPI_HOST_BYTES, "%.*s", node + 1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

static void words(int node, char name[FSDPI_HOST_BYTES])
{
    static const char *const NAMES[] = {"login", "gpu-a", "gpu-b", "storage-of-them-all", "x", ""};

    (void)snprintf(name, FSDPI_HOST_BYTES, "%s", NAMES[node % 6]);
}

static void of_one_name(int node, char name[FSDPI_HOST_BYTES])
{
    (void)node;
    (void)snprintf(name, FSDPI_HOST_BYTES, "localhost");
}

static void long_numbers(int node, char name[FSDPI_HOST_BYTES])
{
    (void)snprintf(name, FSDPI_HOST_BYTES, "%019d%021d", 1 - node % 2, node);
}

static void longest(int node, char name[FSDPI_HOST_BYTES])
{
    memset(name, 'a' + node % 26, FSDPI_HOST_BYTES - 1);
    name[FSDPI_HOST_BYTES - 1] = '\0';
}

/* As the ranks of `nodes` nodes of one do: from the traits of all to one table, from those of each. */
static fsdpi_host_names collect(naming name, int nodes, int size, unsigned char *table)
{
    fsdpi_host_traits all = {.lengths = 0};
    fsdpi_host_names  names;
    char              text[FSDPI_HOST_BYTES] = "";

    for (int m = 0; m < nodes; m++) {
        name(m, text);
        const fsdpi_host_traits traits = fsdpi_host_traits_of(text);
        for (size_t i = 0; i < sizeof all; i++) {
            ((unsigned char *)&all)[i] |= ((const unsigned char *)&traits)[i];
        }
    }
    fsdpi_host_names_begin(&names, text, &all, nodes, size);
    fsdpi_host_names_move(&names, table);
    for (int m = 0; m < nodes; m++) {
        name(m, text);
        fsdpi_host_names_put(&names, m, text);
    }
    return names;
}

static void check(naming name, int nodes, int size, bool known)
{
    unsigned char         *table = calloc(1, fsdpi_host_names_bytes(size));
    const fsdpi_host_names names = collect(name, nodes, size, table);

    assert_non_null(table);
    assert_int_equal(known, names.known);
    for (int m = 0; m < nodes; m++) {
        char expected[FSDPI_HOST_BYTES] = "", found[FSDPI_HOST_BYTES];

        if (known) {
            name(m, expected);
        }
        fsdpi_host_names_get(&names, m, found);
        assert_string_equal(expected, found);
    }
    free(table);
}

static void every_name_is_what_it_was(void **state)
{
    static const naming NAMINGS[] = {numbered, numbered_within, without_zeros, repeated,
                                     words,    of_one_name,     long_numbers,  longest};

    (void)state;
    for (size_t i = 0; i < sizeof NAMINGS / sizeof NAMINGS[0]; i++) {
        for (int nodes = 1; nodes <= 26; nodes++) {
            check(NAMINGS[i], nodes, nodes, true);
        }
    }
}

static void a_hundred_thousand_names_fit(void **state)
{
    (void)state;
    check(numbered, 100000, 100000, true);
    check(numbered_within, 12500, 100000, true);
    check(of_one_name, 1000000, 1000000, true);
    assert_in_range(fsdpi_host_names_bytes(1000000), 0, 300 << 10);
}

static void names_that_do_not_fit_are_not_known(void **state)
{
    (void)state;
    check(longest, 100, 100, false);
    check(without_zeros, 100000, 100000, false);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_what_it_was),
        cmocka_unit_test(a_hundred_thousand_names_fit),
        cmocka_unit_test(names_that_do_not_fit_are_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
