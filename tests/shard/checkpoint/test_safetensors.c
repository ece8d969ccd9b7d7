#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shard/checkpoint/format/checksums.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

static fsdpi_problem problem;

/* As a reader does with a file in memory. */
static fsdp_status parse_file(const unsigned char *file, size_t bytes, fsdpi_safetensors *parsed)
{
    size_t header_bytes;

    *parsed = (fsdpi_safetensors){0};
    if (bytes < 8) {
        return FSDP_ERR_FORMAT;
    }
    const fsdp_status status = fsdpi_safetensors_length("t", file, bytes, &header_bytes, &problem);
    return status == FSDP_OK
               ? fsdpi_safetensors_parse("t", (const char *)file + 8, header_bytes, bytes, parsed, &problem)
               : status;
}

static fsdp_status parse(const char *header, size_t data_bytes, fsdpi_safetensors *parsed)
{
    size_t               bytes;
    unsigned char *const file   = test_safetensors_make(header, data_bytes, &bytes);
    const fsdp_status    status = parse_file(file, bytes, parsed);

    free(file);
    return status;
}

static void refused(const char *header, size_t data_bytes, const char *says)
{
    fsdpi_safetensors parsed;

    if (parse(header, data_bytes, &parsed) == FSDP_OK) {
        fail_msg("taken: %s", header);
    }
    assert_int_equal(FSDP_ERR_FORMAT, problem.status);
    assert_null(parsed.tensors);
    test_contains(problem.text, says);
}

static void taken(const char *header, size_t data_bytes)
{
    fsdpi_safetensors parsed;

    if (parse(header, data_bytes, &parsed) != FSDP_OK) {
        fail_msg("%s: %s", header, problem.text);
    }
    fsdpi_safetensors_free(&parsed);
}

#define TENSOR(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
/* Headers of a tensor a, and of a and b. */
#define ONE(dtype, shape, offsets) "{\"a\":" TENSOR(dtype, shape, offsets) "}"
#define TWO(a, b)                  "{\"a\":" a ",\"b\":" b "}"

static const char good[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"},\"w\":" TENSOR("F32", "[2,3]", "[3,27]") ",\"b\":" TENSOR(
        "U8", "[3]", "[0,3]") ",\"s\":" TENSOR("F64", "[]", "[27,35]") ",\"e\":" TENSOR("BF16", "[4,0]",
                                                                                        "[3,3]") "}   ";

static void a_header_is_taken_apart(void **state)
{
    static const char *const order[] = {"b", "e", "w", "s"};
    fsdpi_safetensors        parsed;

    (void)state;
    if (parse(good, 35, &parsed) != FSDP_OK || parsed.n_tensors != 4) {
        fail_msg("%zu tensors; %s", parsed.n_tensors, problem.text);
        return;
    }
    assert_int_equal(8 + strlen(good), parsed.data_offset);
    assert_int_equal(8 + strlen(good) + 35, parsed.file_bytes);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(order[i], parsed.tensors[i].name);
        assert_ptr_equal(&parsed.tensors[i], fsdpi_safetensors_find(&parsed, order[i]));
    }
    assert_null(fsdpi_safetensors_find(&parsed, "x"));

    const fsdpi_tensor_info *const w = fsdpi_safetensors_find(&parsed, "w");
    assert_int_equal(FSDPI_STORED_F32, w->dtype);
    assert_int_equal(2, w->n_dims);
    assert_int_equal(2, w->dims[0]);
    assert_int_equal(3, w->dims[1]);
    assert_int_equal(3, w->begin);
    assert_int_equal(27, w->end);
    assert_int_equal(6, fsdpi_tensor_elements(w));
    assert_int_equal(1, fsdpi_tensor_elements(fsdpi_safetensors_find(&parsed, "s")));
    assert_int_equal(0, fsdpi_tensor_elements(fsdpi_safetensors_find(&parsed, "e")));
    assert_string_equal("pt", fsdpi_safetensors_metadata(&parsed, "format"));
    assert_string_equal("", fsdpi_safetensors_metadata(&parsed, "x"));
    assert_null(fsdpi_safetensors_metadata(&parsed, "y"));
    fsdpi_safetensors_free(&parsed);
}

static void the_length_of_the_header_is_within_bounds(void **state)
{
    const unsigned char huge[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, more[8] = {0x01, 0xe1, 0xf5, 0x05},
                        most[8] = {0x00, 0xe1, 0xf5, 0x05};
    size_t bytes;

    (void)state;
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_safetensors_length("t", huge, UINT64_MAX, &bytes, &problem));
    test_contains(problem.text, "t: byte 0: a header of 18446744073709551615 bytes; the format allows 100000000");
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_safetensors_length("t", more, UINT64_MAX, &bytes, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_safetensors_length("t", most, 100000007, &bytes, &problem));
    assert_int_equal(FSDP_OK, fsdpi_safetensors_length("t", most, 100000008, &bytes, &problem));
    assert_int_equal(100000000, bytes);
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_safetensors_length("t", most, 7, &bytes, &problem));
}

static void a_header_is_one_object_and_spaces(void **state)
{
    (void)state;
    taken("{}", 0);
    taken("{}      ", 0);
    refused("", 0, "t: byte 8: the header does not begin with '{'");
    refused("   ", 0, "does not begin with '{'");
    refused(" {}", 0, "does not begin with '{'");
    refused("[]", 0, "does not begin with '{'");
    refused("{}\n", 0, "byte 10: the header does not end with '}' and spaces");
    refused("{}{}", 0, "byte 10: '{' where the end of the text");
    refused("{} {}", 0, "byte 11: '{' where the end of the text");
    refused("{", 0, "does not end with '}'");
    refused("{\"a\":" TENSOR("U8", "[1]", "[0,1]") "} x }", 1, "'x' where the end");
}

static void names_come_once(void **state)
{
    (void)state;
    refused("{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"a\":" TENSOR("U8", "[1]", "[1,2]") "}", 2,
            "tensor 'a' comes twice");
    refused("{\"a\":" TENSOR("U8", "[1]", "[0,1]") ",\"\\u0061\":" TENSOR("U8", "[1]", "[1,2]") "}", 2,
            "tensor 'a' comes twice");
    refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ comes twice");
    refused("{\"__metadata__\":{\"a\":\"\",\"b\":\"\",\"a\":\"\"}}", 0, "'a' comes twice in __metadata__");
    refused("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
            "tensor 'a' has two members 'dtype'");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "two members 'shape'");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"data_offsets\":[0,1]}}", 1,
            "two members 'data_offsets'");
}

static void a_tensor_has_three_members(void **state)
{
    (void)state;
    refused("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "t: byte 9: tensor 'a' has no dtype");
    refused("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "tensor 'a' has no shape");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "tensor 'a' has no data_offsets");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1, "a member 'x'");
    refused("{\"a\":1}", 1, "tensor 'a' is no object");
    refused("{\"a\":[]}", 1, "tensor 'a' is no object");
    refused("{\"__metadata__\":1}", 0, "__metadata__ is no object");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__: 'a' is no string");
    refused("{\"__metadata__\":{\"a\":{}}}", 0, "__metadata__: 'a' is no string");
}

static void types_are_known(void **state)
{
    (void)state;
    refused(ONE("F31", "[1]", "[0,4]"), 4, "tensor 'a': the format has no dtype 'F31'");
    refused(ONE("f32", "[1]", "[0,4]"), 4, "no dtype 'f32'");
    refused(ONE("", "[1]", "[0,4]"), 4, "no dtype ''");
    refused("{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "the dtype is no string");
#define TAKES(enumerator, text, bits) taken(ONE(text, "[2,4]", "[0," #bits "]"), bits);
    FSDPI_STORED_LIST(TAKES)
#undef TAKES
    refused(ONE("F4", "[3]", "[0,2]"), 2, "no whole number of bytes");
    for (int i = 0; i < FSDP_N_DTYPES; i++) {
        assert_int_equal(8 * fsdp_dtype_size((fsdp_dtype)i), fsdpi_stored_bits((fsdpi_stored)i));
        assert_int_equal(0, strcasecmp(fsdp_dtype_name((fsdp_dtype)i), fsdpi_stored_name((fsdpi_stored)i)));
    }
}

static void shapes_and_offsets_are_whole_numbers(void **state)
{
    static const char *const none[] = {"-1",  "1.0", "1e0", "18446744073709551616", "\"1\"", "null",
                                       "[1]", "-0",  "true"};

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char header[256];

        (void)snprintf(header, sizeof header, ONE("U8", "[%s]", "[0,1]"), none[i]);
        refused(header, 1, "tensor 'a': a dimension is not a whole number");
        (void)snprintf(header, sizeof header, ONE("U8", "[1]", "[0,%s]"), none[i]);
        refused(header, 1, "tensor 'a': an offset is not a whole number");
        (void)snprintf(header, sizeof header, ONE("U8", "[1]", "[%s,1]"), none[i]);
        refused(header, 1, "tensor 'a': an offset is not a whole number");
    }
    refused(ONE("U8", "1", "[0,1]"), 1, "the shape is no array");
    refused(ONE("U8", "{}", "[0,1]"), 1, "the shape is no array");
    refused(ONE("U8", "[1]", "[0]"), 1, "data_offsets are no array of two");
    refused(ONE("U8", "[1]", "[]"), 1, "data_offsets are no array of two");
    refused(ONE("U8", "[1]", "[0,1,1]"), 1, "data_offsets are no array of two");
    refused(ONE("U8", "[1]", "1"), 1, "data_offsets are no array of two");
}

static void bytes_are_those_of_the_shape(void **state)
{
    (void)state;
    refused(ONE("F32", "[2]", "[0,4]"), 4, "tensor 'a' has 4 bytes of data, but its shape has 8");
    refused(ONE("F32", "[]", "[0,0]"), 0, "tensor 'a' has 0 bytes of data, but its shape has 4");
    refused(ONE("F32", "[0]", "[0,4]"), 4, "tensor 'a' has 4 bytes of data, but its shape has 0");
    /* products that would wrap around to what the offsets say */
    refused(ONE("U8", "[4294967296,4294967296]", "[0,0]"), 0, "2^64 bits or more");
    refused(ONE("U8", "[4294967297,4294967295,4294967297]", "[0,1]"), 1, "2^64 bits or more");
    refused(ONE("F64", "[2305843009213693952]", "[0,0]"), 0, "2^64 bits or more");
    refused(ONE("F32", "[9223372036854775808,2]", "[0,0]"), 0, "2^64 bits or more");
    refused(ONE("F32", "[18446744073709551615,18446744073709551615,0]", "[0,0]"), 0, "2^64 bits or more");
    taken(ONE("F32", "[0,18446744073709551615,18446744073709551615]", "[0,0]"), 0);
}

static void data_has_no_hole_and_no_overlap(void **state)
{
    (void)state;
    refused(ONE("U8", "[1]", "[1,0]"), 1, "tensor 'a' lies from 1 to 0");
    refused(ONE("U8", "[2]", "[0,2]"), 1, "tensor 'a' lies from 0 to 2 in data of 1 bytes");
    refused(ONE("U8", "[1]", "[18446744073709551615,18446744073709551615]"), 1, "tensor 'a' lies");
    refused(TWO(TENSOR("U8", "[2]", "[0,2]"), TENSOR("U8", "[2]", "[1,3]")), 3,
            "tensor 'b' begins at byte 1 of the data, before byte 2");
    refused(TWO(TENSOR("U8", "[2]", "[0,2]"), TENSOR("U8", "[2]", "[0,2]")), 2, "before byte 2");
    refused(TWO(TENSOR("U8", "[1]", "[0,1]"), TENSOR("U8", "[1]", "[2,3]")), 3,
            "tensor 'b' begins at byte 2 of the data, behind byte 1");
    refused(ONE("U8", "[1]", "[1,2]"), 2, "tensor 'a' begins at byte 1 of the data, behind byte 0");
    refused(ONE("U8", "[1]", "[0,1]"), 2, "the tensors end at byte 1 of the data, which has 2");
    refused("{}", 1, "the tensors end at byte 0 of the data, which has 1");
    refused(TWO(TENSOR("U8", "[4]", "[0,4]"), TENSOR("U8", "[0]", "[2,2]")), 4, "before byte 4");
}

static void json_is_strict_here_too(void **state)
{
    size_t               bytes;
    unsigned char *const file = test_safetensors_make(ONE("U8", "[1]", "[0,1]"), 1, &bytes);
    fsdpi_safetensors    parsed;

    (void)state;
    file[10] = 0;
    assert_int_equal(FSDP_ERR_FORMAT, parse_file(file, bytes, &parsed));
    test_contains(problem.text, "t: byte 10: a control character 0x00 in a string");
    free(file);
    refused("{\"\\u0000\":" TENSOR("U8", "[1]", "[0,1]") "}", 1, "a NUL in a string");
    refused("{\"\xff\":" TENSOR("U8", "[1]", "[0,1]") "}", 1, "not UTF-8");
    refused("{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}", 0,
            "tensor 'a' is no object");
    refused("{\"a\":{\"shape\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}", 0,
            "a dimension");
}

/* Many brackets and numbers in little text: memory and time stay in proportion to the text. */
static void large_hostile_headers_cost_little(void **state)
{
    static const char start[] = "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0],\"shape\":[0";
    const size_t      n = 4000000, bytes = sizeof start - 1 + 2 * n + 3;
    char *const       header = malloc(bytes + 1);
    char             *to     = header + sizeof start - 1;
    fsdpi_safetensors parsed;

    (void)state;
    assert_non_null(header);
    memcpy(header, start, sizeof start - 1);
    for (size_t i = 0; i < n; i++, to += 2) {
        memcpy(to, ",9", 2);
    }
    memcpy(to, "]}}", 3);
    assert_int_equal(FSDP_OK, fsdpi_safetensors_parse("t", header, bytes, 8 + bytes, &parsed, &problem));
    assert_int_equal(n + 1, parsed.tensors[0].n_dims);
    fsdpi_safetensors_free(&parsed);
    free(header);
}

static void every_beginning_of_a_file_is_refused(void **state)
{
    size_t               bytes;
    unsigned char *const file = test_safetensors_make(good, 35, &bytes);

    (void)state;
    for (size_t n = 0; n < bytes; n++) {
        unsigned char *const part = malloc(n + 1); /* of its own, so that a sanitizer sees the end */
        fsdpi_safetensors    parsed;

        assert_non_null(part);
        memcpy(part, file, n);
        assert_int_equal(FSDP_ERR_FORMAT, parse_file(part, n, &parsed));
        free(part);
    }
    free(file);
}

static bool same_but_for_text(const fsdpi_safetensors *a, const fsdpi_safetensors *b)
{
    bool same = a->n_tensors == b->n_tensors && a->data_offset == b->data_offset;

    for (size_t i = 0; same && i < a->n_tensors; i++) {
        const fsdpi_tensor_info *const x = &a->tensors[i], *const y = &b->tensors[i];

        same = x->dtype == y->dtype && x->n_dims == y->n_dims && x->begin == y->begin && x->end == y->end &&
               (x->n_dims == 0 || memcmp(x->dims, y->dims, x->n_dims * sizeof *x->dims) == 0);
    }
    return same;
}

/* A name is free text, and the other dimensions of a tensor without elements are free too: that is what checksums are for. */
static void a_flipped_bit_is_refused_or_changes_only_a_name(void **state)
{
    size_t               bytes, n_taken = 0;
    unsigned char *const file = test_safetensors_make(good, 35, &bytes);
    const uint64_t       sum  = fsdpi_checksum(file, bytes);
    fsdpi_safetensors    whole, parsed;

    (void)state;
    assert_int_equal(FSDP_OK, parse_file(file, bytes, &whole));
    for (size_t bit = 0; bit < 8 * (bytes - 35); bit++) {
        file[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(fsdpi_checksum(file, bytes) != sum);
        if (parse_file(file, bytes, &parsed) == FSDP_OK) {
            const bool empty_shape = file[bit / 8 + 1] == ',' && file[bit / 8 - 1] == '[' && file[bit / 8 + 2] == '0';

            n_taken++;
            if (!same_but_for_text(&whole, &parsed) && !empty_shape) {
                fail_msg("bit %zu of byte %zu is not noticed", bit % 8, bit / 8);
            }
            fsdpi_safetensors_free(&parsed);
        }
        file[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(n_taken > 0 && n_taken < 200); /* of 2000; names have 14 bytes, metadata 10, and there are spaces */
    fsdpi_safetensors_free(&whole);
    free(file);
}

static void what_is_laid_out_is_read_back(void **state)
{
    static const uint64_t        dims[]     = {3, 5, 7};
    static const fsdpi_text_pair metadata[] = {{"format", "pt"}, {"\"", "\n\xc3\xa9"}};
    fsdpi_tensor_info            tensors[]  = {{.name = "u8", .dtype = FSDPI_STORED_U8, .n_dims = 1, .dims = dims},
                                               {.name = "f32", .dtype = FSDPI_STORED_F32, .n_dims = 3, .dims = dims},
                                               {.name = "i64", .dtype = FSDPI_STORED_I64},
                                               {.name = "bf16", .dtype = FSDPI_STORED_BF16, .n_dims = 2, .dims = dims + 1},
                                               {.name = "f32 \xc3\xa9\"", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims}};
    const uint64_t               begins[]   = {8 + 420 + 12 + 70, 8, 0, 8 + 420 + 12, 8 + 420};
    char                        *header;
    size_t                       header_bytes;
    uint64_t                     file_bytes;
    fsdpi_safetensors            parsed;

    (void)state;
    assert_int_equal(FSDP_OK, fsdpi_safetensors_lay_out("t", tensors, 5, metadata, 2, &header, &header_bytes,
                                                        &file_bytes, &problem));
    assert_int_equal(0, header_bytes % FSDPI_SAFETENSORS_ALIGNMENT);
    assert_int_equal(header_bytes + 8 + 420 + 12 + 70 + 3, file_bytes);
    assert_int_equal(FSDP_OK,
                     fsdpi_safetensors_parse("t", header + 8, header_bytes - 8, file_bytes, &parsed, &problem));
    assert_int_equal(header_bytes, parsed.data_offset);
    for (size_t i = 0; i < 5; i++) {
        const fsdpi_tensor_info *const found = fsdpi_safetensors_find(&parsed, tensors[i].name);

        assert_int_equal(begins[i], tensors[i].begin);
        assert_non_null(found);
        assert_int_equal(tensors[i].begin, found->begin);
        assert_int_equal(tensors[i].end, found->end);
        assert_int_equal(tensors[i].n_dims, found->n_dims);
        assert_int_equal(tensors[i].dtype, found->dtype);
    }
    assert_string_equal("\n\xc3\xa9", fsdpi_safetensors_metadata(&parsed, "\""));
    fsdpi_safetensors_free(&parsed);
    free(header);
}

static void bad_tensors_are_not_laid_out(void **state)
{
    static const uint64_t   dims[]  = {1, 2305843009213693952u, 3};
    const fsdpi_tensor_info one     = {.name = "a", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims};
    const fsdpi_text_pair   twice[] = {{"k", "1"}, {"k", "2"}};
    fsdpi_tensor_info       tensors[2];
    char                   *header;
    size_t                  header_bytes;
    uint64_t                bytes;

    (void)state;
#define LAY_OUT(n, pairs, n_pairs)                                                                                     \
    fsdpi_safetensors_lay_out("t", tensors, n, pairs, n_pairs, &header, &header_bytes, &bytes, &problem)
    tensors[0] = tensors[1] = one;
    assert_int_equal(FSDP_ERR_ARG, LAY_OUT(2, NULL, 0));
    test_contains(problem.text, "tensor 'a' comes twice");
    assert_null(header);
    assert_int_equal(FSDP_ERR_ARG, LAY_OUT(1, twice, 2));
    tensors[1].name = "";
    assert_int_equal(FSDP_ERR_ARG, LAY_OUT(2, NULL, 0));
    tensors[1].name = "\xff";
    assert_int_equal(FSDP_ERR_ARG, LAY_OUT(2, NULL, 0));
    tensors[1].name = "__metadata__";
    assert_int_equal(FSDP_ERR_ARG, LAY_OUT(2, NULL, 0));
    assert_int_equal(FSDP_ERR_ARG, LAY_OUT(2, twice, 1));
    tensors[1].name   = "b";
    tensors[1].n_dims = 2;
    assert_int_equal(FSDP_ERR_FORMAT, LAY_OUT(2, NULL, 0));
    tensors[1].n_dims = 1;
    assert_int_equal(FSDP_OK, LAY_OUT(2, NULL, 0));
    free(header);
    assert_int_equal(FSDP_OK, LAY_OUT(0, NULL, 0));
    assert_int_equal(header_bytes, bytes);
    free(header);
#undef LAY_OUT
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_taken_apart),
        cmocka_unit_test(the_length_of_the_header_is_within_bounds),
        cmocka_unit_test(a_header_is_one_object_and_spaces),
        cmocka_unit_test(names_come_once),
        cmocka_unit_test(a_tensor_has_three_members),
        cmocka_unit_test(types_are_known),
        cmocka_unit_test(shapes_and_offsets_are_whole_numbers),
        cmocka_unit_test(bytes_are_those_of_the_shape),
        cmocka_unit_test(data_has_no_hole_and_no_overlap),
        cmocka_unit_test(json_is_strict_here_too),
        cmocka_unit_test(large_hostile_headers_cost_little),
        cmocka_unit_test(every_beginning_of_a_file_is_refused),
        cmocka_unit_test(a_flipped_bit_is_refused_or_changes_only_a_name),
        cmocka_unit_test(what_is_laid_out_is_read_back),
        cmocka_unit_test(bad_tensors_are_not_laid_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
