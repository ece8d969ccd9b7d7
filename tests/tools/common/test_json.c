#include <stdio.h>
#include <stdlib.h>

#include "tests/support/unit_test.h"
#include "tools/common/json.h"

static void a_string_is_quoted_and_escaped(void **state)
{
    char  *text;
    size_t bytes;
    FILE  *file = open_memstream(&text, &bytes);

    (void)state;
    assert_non_null(file);
    cli_json_text(file, "");
    cli_json_text(file, "a \"b\" \\ /\n\t\x01\x1f\x7f \xc3\xa9");
    assert_int_equal(0, fclose(file));
    assert_string_equal("\"\""
                        "\"a \\\"b\\\" \\\\ /\\u000a\\u0009\\u0001\\u001f\x7f \xc3\xa9\"",
                        text);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_string_is_quoted_and_escaped)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
