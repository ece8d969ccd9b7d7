/**
 * @file
 * A program that loads the library when it runs, as interpreters and those with plug-ins do, and when other libraries have
 * taken all the room that it has for variables of threads at fixed offsets (static TLS).
 *
 *   test_lib_dlopen LIBFSDP LARGE SMALL    the last two: libraries with a large and a small such variable, of which each
 *                                          copy takes some of that room
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/dtype.h"
#include "tests/support/unit_test.h"

enum { MOST_COPIES = 2000, PATH_BYTES = 1000 };

static const char *library, *large, *small;

static bool copy_file(const char *from, const char *to)
{
    char   buffer[4096];
    size_t n  = 0;
    FILE  *in = fopen(from, "rb"), *out = fopen(to, "wb");
    bool   ok = in != NULL && out != NULL;

    while (ok && (n = fread(buffer, 1, sizeof buffer, in)) > 0) {
        ok = fwrite(buffer, 1, n, out) == n;
    }
    ok = (in == NULL || fclose(in) == 0) && ok;
    return (out == NULL || fclose(out) == 0) && ok;
}

/* Loads copies of a library until no more can be loaded; false if there is no end to that. */
static bool load_copies(const char *original, const char *name)
{
    const char *folder = getenv("TMPDIR"); /* of this test alone */
    char        path[PATH_BYTES];

    assert_non_null(folder);
    for (int i = 0; i < MOST_COPIES; i++) {
        (void)snprintf(path, sizeof path, "%s/%s.%d.so", folder, name, i);
        assert_true(copy_file(original, path));
        if (dlopen(path, RTLD_NOW) == NULL) {
            return strstr(dlerror(), "static TLS") != NULL;
        }
    }
    return false;
}

static void *symbol(void *loaded, const char *name)
{
    void *found = dlsym(loaded, name);

    assert_non_null(found);
    return found;
}

static void it_can_be_loaded_when_static_tls_is_used_up(void **state)
{
    fsdp_status (*parse)(const char *, fsdp_dtype *);
    const char *(*last_error)(const void *);
    fsdp_dtype dtype;

    (void)state;
    if (!load_copies(large, "large") || !load_copies(small, "small")) {
        print_message("this system has no end of static TLS\n");
        skip();
    }
    void *loaded = dlopen(library, RTLD_NOW);
    if (loaded == NULL) {
        fail_msg("%s", dlerror());
    }
    *(void **)(void *)&parse      = symbol(loaded, "fsdp_dtype_parse");
    *(void **)(void *)&last_error = symbol(loaded, "fsdp_last_error");
    assert_string_equal("", last_error(NULL));
    assert_int_equal(FSDP_ERR_ARG, parse("no type", &dtype));
    assert_non_null(strstr(last_error(NULL), "no type"));
    assert_int_equal(0, dlclose(loaded));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_can_be_loaded_when_static_tls_is_used_up),
    };

    if (argc != 4) {
        return EXIT_FAILURE;
    }
    library = argv[1];
    large   = argv[2];
    small   = argv[3];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
