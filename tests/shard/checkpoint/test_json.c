#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/format/json.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

static fsdpi_problem problem;

static fsdpi_json_value *parse(const char *text)
{
    fsdpi_json_value *root;

    if (fsdpi_json_parse("t.json", text, strlen(text), &root, &problem) != FSDP_OK) {
        fail_msg("%s: %s", text, problem.text);
    }
    return root;
}

static void refused(const char *text, const char *says)
{
    fsdpi_json_value *root;

    if (fsdpi_json_parse("t.json", text, strlen(text), &root, &problem) == FSDP_OK) {
        fail_msg("taken: %s", text);
    }
    assert_int_equal(FSDP_ERR_FORMAT, problem.status);
    assert_null(root);
    test_contains(problem.text, says);
}

static void values_are_exact(void **state)
{
    fsdpi_json_value *const root =
        parse(" {\"u\":18446744073709551615,\"i\":-9223372036854775808,\"d\":0.1,\"e\":-25E-1,"
              "\"t\":true,\"f\":false,\"n\":null,\"s\":\"a\\u00e9\\ud83d\\ude00\\n\",\"a\":[1,[2],{}]} ");
    uint64_t    u64;
    int64_t     i64;
    double      real;
    bool        yes;
    const char *string;

    (void)state;
    assert_int_equal(9, fsdpi_json_count(root));
    assert_int_equal(FSDP_OK, fsdpi_json_get_u64(fsdpi_json_member(root, "u"), &u64, &problem));
    assert_true(u64 == UINT64_MAX);
    assert_int_equal(FSDP_OK, fsdpi_json_get_i64(fsdpi_json_member(root, "i"), &i64, &problem));
    assert_true(i64 == INT64_MIN);
    assert_int_equal(FSDP_OK, fsdpi_json_get_double(fsdpi_json_member(root, "d"), &real, &problem));
    assert_true(real == 0.1);
    assert_int_equal(FSDP_OK, fsdpi_json_get_double(fsdpi_json_member(root, "e"), &real, &problem));
    assert_true(real == -2.5);
    assert_int_equal(FSDP_OK, fsdpi_json_get_bool(fsdpi_json_member(root, "t"), &yes, &problem));
    assert_true(yes);
    assert_int_equal(FSDP_OK, fsdpi_json_get_bool(fsdpi_json_member(root, "f"), &yes, &problem));
    assert_false(yes);
    assert_int_equal(FSDPI_JSON_NULL, fsdpi_json_kind_of(fsdpi_json_member(root, "n")));
    assert_int_equal(FSDP_OK, fsdpi_json_get_string(fsdpi_json_member(root, "s"), &string, &problem));
    assert_string_equal("a\xc3\xa9\xf0\x9f\x98\x80\n", string);

    const fsdpi_json_value *const array = fsdpi_json_member(root, "a");
    assert_int_equal(3, fsdpi_json_count(array));
    assert_int_equal(FSDPI_JSON_OBJECT, fsdpi_json_kind_of(fsdpi_json_item(array, 2)));
    assert_null(fsdpi_json_name(fsdpi_json_item(array, 0)));
    assert_int_equal(FSDP_OK, fsdpi_json_get_u64(fsdpi_json_item(fsdpi_json_item(array, 1), 0), &u64, &problem));
    assert_int_equal(2, u64);
    assert_null(fsdpi_json_member(root, "x"));
    assert_null(fsdpi_json_member(array, "u"));
    fsdpi_json_free(root);
}

static void what_is_no_json_is_refused_at_its_byte(void **state)
{
    (void)state;
    refused("", "byte 0: the text ends where a value should be");
    refused("  ", "byte 2");
    refused("{\"a\":1,}", "byte 7: '}' where a name in quotes should be");
    refused("[1,]", "byte 3: ']' where a value");
    refused("[1 2]", "byte 3: '2' where ',' or ']'");
    refused("[1", "byte 2: the text ends where ',' or ']'");
    refused("{\"a\" 1}", "byte 5: '1' where ':'");
    refused("{a:1}", "byte 1: 'a' where a name in quotes");
    refused("{\"a\":1]", "byte 6: ']' where ',' or '}'");
    refused("1 2", "byte 2: '2' where the end of the text");
    refused("nul", "byte 0: 'n' where a value");
    refused("NaN", "'N' where a value");
    refused("'a'", "''' where a value");
    refused("\xef\xbb\xbf{}", "byte 0: a byte 0xef where a value");
    refused("// x", "'/' where a value");
}

static void numbers_keep_to_the_grammar(void **state)
{
    char long_number[200];

    (void)state;
    refused("01", "byte 0: a number with a leading zero");
    refused("-01", "byte 1: a number with a leading zero");
    refused("-", "byte 1: the text ends where a digit");
    refused("+1", "'+' where a value");
    refused(".5", "'.' where a value");
    refused("1.", "a digit");
    refused("1e", "a digit");
    refused("1e+", "a digit");
    refused("1.e3", "'e' where a digit");
    refused("0x10", "'x' where the end");
    refused("1e309", "too large for a double");
    refused("-1e999", "too large for a double");
    memset(long_number, '1', sizeof long_number - 1);
    long_number[sizeof long_number - 1] = 0;
    refused(long_number, "more than 128 characters");
}

static void strings_are_utf8_without_nul(void **state)
{
    static const char *const not_utf8[] = {
        "\x80",         "\xc0\xaf",         "\xc1\xbf",         "\xe0\x80\x80",     "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82",
        "\xff"};
    fsdpi_json_value *root;

    (void)state;
    for (size_t i = 0; i < sizeof not_utf8 / sizeof *not_utf8; i++) {
        char text[16];

        (void)snprintf(text, sizeof text, "\"a%s\"", not_utf8[i]);
        refused(text, "byte 2: a string is not UTF-8");
    }
    fsdpi_json_free(
        parse("\"\xc2\x80 \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf \x7f\""));
    refused("\"a", "byte 0: a string without end");
    refused("\"a\n\"", "byte 2: a control character 0x0a");
    refused("\"\\x\"", "'x' where an escape");
    refused("\"\\", "the text ends where an escape");
    refused("\"\\u12g4\"", "'g' where a hexadecimal digit");
    refused("\"\\u0000\"", "byte 3: a NUL");
    refused("\"\\ud800\"", "half of a pair");
    refused("\"\\udc00\"", "half of a pair");
    refused("\"\\ud800\\u0041\"", "half of a pair");
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_parse("t", "\"a\0b\"", 5, &root, &problem));
    test_contains(problem.text, "byte 2: a control character 0x00");
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_parse("t", "1\0", 2, &root, &problem));
}

static void a_name_comes_once(void **state)
{
    (void)state;
    refused("{\"a\":1,\"b\":{\"c\":1,\"\\u0063\":2}}", "byte 27: b.c: this name comes twice");
    fsdpi_json_free(parse("{\"a\":{\"a\":1},\"b\":{\"a\":1}}"));
}

static void nesting_ends(void **state)
{
    char text[2 * FSDPI_JSON_DEPTH + 3];

    (void)state;
    for (int depth = FSDPI_JSON_DEPTH; depth <= FSDPI_JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        if (depth == FSDPI_JSON_DEPTH) {
            fsdpi_json_free(parse(text));
        } else {
            refused(text, "byte 32: arrays and objects more than 32 deep");
        }
    }
}

static void other_kinds_are_refused_with_their_path(void **state)
{
    fsdpi_json_value *const       root   = parse("{\"s\":{\"p\":[0,-1,1.5,\"x\"]},\"big\":18446744073709551616}");
    const fsdpi_json_value *const array  = fsdpi_json_member(fsdpi_json_member(root, "s"), "p");
    const fsdpi_json_value       *member = NULL;
    uint64_t                      u64    = 7;
    int64_t                       i64;
    double                        real;
    bool                          yes;
    const char                   *string;

    (void)state;
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_u64(fsdpi_json_item(array, 1), &u64, &problem));
    assert_string_equal(
        "t.json: byte 13: s.p[1]: a negative whole number where a whole number from 0 to 2^64 - 1 should be",
        problem.text);
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_u64(fsdpi_json_item(array, 2), &u64, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_u64(fsdpi_json_member(root, "big"), &u64, &problem));
    assert_int_equal(7, u64);
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_i64(fsdpi_json_item(array, 2), &i64, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_double(fsdpi_json_item(array, 3), &real, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_bool(fsdpi_json_item(array, 0), &yes, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_string(array, &string, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_get_u64(NULL, &u64, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_require(root, "x", FSDPI_JSON_STRING, &member, &problem));
    test_contains(problem.text, "there is no \"x\"");
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_require(root, "s", FSDPI_JSON_STRING, &member, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_json_require(array, "s", FSDPI_JSON_STRING, &member, &problem));
    fsdpi_json_free(root);
}

/* Random bits, so doubles of all sizes. */
static double any_double(uint64_t *seed)
{
    double   value;
    uint64_t bits;

    do {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        bits  = *seed ^ *seed >> 31;
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static void doubles_come_back_bit_by_bit(void **state)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1.0,
                                     0.1,
                                     5e-324,
                                     -5e-324,
                                     2.2250738585072014e-308,
                                     1.7976931348623157e308,
                                     9007199254740992.0,
                                     9007199254740993.0,
                                     1e22,
                                     1e23,
                                     18446744073709551616.0};
    const size_t        n = 20000, n_special = sizeof special / sizeof *special;
    double *const       values = malloc(n * sizeof *values);
    fsdpi_json_writer   writer;
    fsdpi_json_value   *root;
    char               *text;
    size_t              bytes;
    uint64_t            seed = 1;

    (void)state;
    fsdpi_json_writer_init(&writer, 0);
    fsdpi_json_begin_array(&writer, NULL, true);
    for (size_t i = 0; i < n; i++) {
        values[i] = i < n_special ? special[i] : any_double(&seed);
        fsdpi_json_put_double(&writer, NULL, values[i]);
    }
    fsdpi_json_end_array(&writer);
    assert_int_equal(FSDP_OK, fsdpi_json_writer_end(&writer, &text, &bytes, &problem));
    assert_int_equal(strlen(text), bytes);
    root = parse(text);
    for (size_t i = 0; i < n; i++) {
        double read;

        assert_int_equal(FSDP_OK, fsdpi_json_get_double(fsdpi_json_item(root, i), &read, &problem));
        assert_memory_equal(&values[i], &read, sizeof read);
    }
    fsdpi_json_free(root);
    free(text);
    free(values);
}

static void what_is_not_finite_is_a_string(void **state)
{
    fsdpi_json_value *const root = parse("[\"NaN\",\"Infinity\",\"-Infinity\"]");
    fsdpi_json_writer       writer;
    double                  values[3];
    char                   *text;
    size_t                  bytes;

    (void)state;
    fsdpi_json_writer_init(&writer, 0);
    fsdpi_json_begin_array(&writer, NULL, true);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(FSDP_OK, fsdpi_json_get_double(fsdpi_json_item(root, i), &values[i], &problem));
        fsdpi_json_put_double(&writer, NULL, values[i]);
    }
    fsdpi_json_end_array(&writer);
    assert_true(isnan(values[0]) && values[1] > 0 && isinf(values[1]) && values[2] < 0 && isinf(values[2]));
    assert_int_equal(FSDP_OK, fsdpi_json_writer_end(&writer, &text, &bytes, &problem));
    assert_string_equal("[\"NaN\",\"Infinity\",\"-Infinity\"]", text);
    free(text);
    fsdpi_json_free(root);
}

static void put_everything(fsdpi_json_writer *writer)
{
    fsdpi_json_begin_object(writer, NULL, false);
    fsdpi_json_put_u64(writer, "u", UINT64_MAX);
    fsdpi_json_put_i64(writer, "i", INT64_MIN);
    fsdpi_json_put_string(writer, "s\"\\", "\x01\t\xc3\xa9\xff");
    fsdpi_json_begin_array(writer, "flat", true);
    fsdpi_json_put_bool(writer, NULL, true);
    fsdpi_json_begin_object(writer, NULL, false);
    fsdpi_json_put_null(writer, "n");
    fsdpi_json_end_object(writer);
    fsdpi_json_end_array(writer);
    fsdpi_json_begin_object(writer, "empty", false);
    fsdpi_json_end_object(writer);
    fsdpi_json_begin_array(writer, "long", false);
    fsdpi_json_put_double(writer, NULL, 0.5);
    fsdpi_json_put_bool(writer, NULL, false);
    fsdpi_json_end_array(writer);
    fsdpi_json_end_object(writer);
}

static void texts_are_written_on_lines_or_on_one(void **state)
{
    static const char *const expected[] = {
        "{\"u\":18446744073709551615,\"i\":-9223372036854775808,\"s\\\"\\\\\":\"\\u0001\\u0009\xc3\xa9\xef\xbf\xbd\","
        "\"flat\":[true,{\"n\":null}],\"empty\":{},\"long\":[0.5,false]}",
        "{\n  \"u\": 18446744073709551615,\n  \"i\": -9223372036854775808,\n"
        "  \"s\\\"\\\\\": \"\\u0001\\u0009\xc3\xa9\xef\xbf\xbd\",\n"
        "  \"flat\": [true, {\"n\": null}],\n  \"empty\": {},\n  \"long\": [\n    0.5,\n    false\n  ]\n}\n"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fsdpi_json_writer writer;
        char             *text;
        size_t            bytes;

        fsdpi_json_writer_init(&writer, 2 * i);
        put_everything(&writer);
        assert_int_equal(FSDP_OK, fsdpi_json_writer_end(&writer, &text, &bytes, &problem));
        assert_string_equal(expected[i], text);
        fsdpi_json_free(parse(text));
        free(text);
    }
}

static void the_locale_changes_nothing(void **state)
{
    fsdpi_json_writer writer;
    char             *text;
    size_t            bytes;

    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL) {
        skip();
    }
    fsdpi_json_writer_init(&writer, 0);
    fsdpi_json_put_double(&writer, NULL, 0.1);
    assert_int_equal(FSDP_OK, fsdpi_json_writer_end(&writer, &text, &bytes, &problem));
    assert_string_equal("0.1", text);
    doubles_come_back_bit_by_bit(state);
    free(text);
    (void)setlocale(LC_NUMERIC, "C");
}

static void problems_are_printable(void **state)
{
    (void)state;
    assert_int_equal(FSDP_ERR_ARG,
                     fsdpi_problem_set(&problem, FSDP_ERR_ARG, "%s", "a\x1b[31m\n\x7f\xff\xc2\x9b\xc3\xa9z"));
    assert_string_equal("a?[31m?????\xc3\xa9z", problem.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_exact),
        cmocka_unit_test(what_is_no_json_is_refused_at_its_byte),
        cmocka_unit_test(numbers_keep_to_the_grammar),
        cmocka_unit_test(strings_are_utf8_without_nul),
        cmocka_unit_test(a_name_comes_once),
        cmocka_unit_test(nesting_ends),
        cmocka_unit_test(other_kinds_are_refused_with_their_path),
        cmocka_unit_test(doubles_come_back_bit_by_bit),
        cmocka_unit_test(what_is_not_finite_is_a_string),
        cmocka_unit_test(texts_are_written_on_lines_or_on_one),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(problems_are_printable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
