#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shard/checkpoint/format/checksums_file.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/state.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

static fsdpi_problem problem;

/* The generator of xxHash's own sanity check, and the sums that it lists for a seed of 0. */
static void sums_are_those_of_xxh3(void **state)
{
    static const struct {
        size_t   bytes;
        uint64_t sum;
    } known[] = {{0, 0x2d06800538d394c2u},   {1, 0xc44bdff4074eecdbu},   {6, 0x27b56a84cd2d7325u},
                 {12, 0xa713daf0dfbb77e7u},  {24, 0xa3fe70bf9d3510ebu},  {48, 0x397da259ecba1f11u},
                 {80, 0xbcdefbbb2c47c90au},  {195, 0xcd94217ee362ec3au}, {403, 0xcdeb804d65c6dea4u},
                 {512, 0x617e49599013cb6bu}, {2048, 0xdd59e2c3a5f038e0u}};
    unsigned char bytes[2048];
    uint64_t      generator = 2654435761u;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(generator >> 56);
        generator *= 11400714785074694797u;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(fsdpi_checksum(bytes, known[i].bytes) == known[i].sum);
    }
}

static fsdp_status get(const char *text, fsdpi_checksums *sums)
{
    fsdpi_json_value *root;

    assert_int_equal(FSDP_OK, fsdpi_json_parse("state.json", text, strlen(text), &root, &problem));
    const fsdp_status status = fsdpi_checksums_get(root, sums, &problem);
    fsdpi_json_free(root);
    return status;
}

static void refused(const char *files, const char *says)
{
    char            text[1024];
    fsdpi_checksums sums;

    (void)snprintf(text, sizeof text, "{\"checksums\":{\"algorithm\":\"XXH3_64\",\"files\":%s}}", files);
    assert_int_equal(FSDP_ERR_FORMAT, get(text, &sums));
    assert_null(sums.files);
    test_contains(problem.text, says);
}

static char *write_text(const fsdpi_checksums *sums)
{
    fsdpi_json_writer writer;
    char             *text;
    size_t            bytes;

    fsdpi_json_writer_init(&writer, 2);
    fsdpi_json_begin_object(&writer, NULL, false);
    fsdpi_checksums_put(&writer, sums);
    fsdpi_json_end_object(&writer);
    assert_int_equal(FSDP_OK, fsdpi_json_writer_end(&writer, &text, &bytes, &problem));
    return text;
}

/* Writes both, reads both. */
static void write_and_read(fsdpi_checksums *sums, fsdpi_checksums *read)
{
    assert_int_equal(FSDP_OK, fsdpi_checksums_file_write("checksums.bin", sums, &problem));
    char *text = write_text(sums);
    assert_int_equal(FSDP_OK, get(text, read));
    assert_true(read->apart);
    assert_int_equal(FSDP_OK, fsdpi_checksums_file_read("checksums.bin", read, &problem));
    free(text);
}

static void sums_are_written_and_read(void **state)
{
    fsdpi_chunk     chunks[] = {{0, 5, UINT64_MAX}, {5, FSDPI_CHUNK_MOST, 0}, {5 + FSDPI_CHUNK_MOST, 1, 0xabc}};
    fsdpi_file_sums files[]  = {{.name = "a", .bytes = 6 + FSDPI_CHUNK_MOST, .n_chunks = 3, .chunks = chunks},
                                {.name = "b"}};
    fsdpi_checksums sums     = {.n_files = 2, .files = files}, read;

    (void)state;
    write_and_read(&sums, &read);
    assert_int_equal(2, read.n_files);
    const fsdpi_file_sums *const a = fsdpi_checksums_find(&read, "a");
    assert_int_equal(3, a->n_chunks);
    assert_memory_equal(chunks, a->chunks, sizeof chunks);
    assert_int_equal(0, fsdpi_checksums_find(&read, "b")->n_chunks);
    assert_null(fsdpi_checksums_find(&read, "c"));
    assert_int_equal(0, fsdpi_chunk_of(a, 4));
    assert_int_equal(1, fsdpi_chunk_of(a, 5));
    assert_int_equal(1, fsdpi_chunk_of(a, 4 + FSDPI_CHUNK_MOST));
    assert_int_equal(2, fsdpi_chunk_of(a, 5 + FSDPI_CHUNK_MOST));
    fsdpi_checksums_free(&read);
}

/* As 3500 ranks may leave them that hold 400 flat parameters each, with moments: state.json alone could not take as many. */
static void more_than_two_million_are_too(void **state)
{
    enum { N = 2800000 };
    fsdpi_chunk    *chunks = calloc(N, sizeof *chunks);
    fsdpi_file_sums file   = {.name = "model.safetensors", .bytes = N, .n_chunks = N, .chunks = chunks};
    fsdpi_state     many   = {.sums = {.n_files = 1, .files = &file}}, found;
    char           *text;
    size_t          bytes;

    (void)state;
    assert_non_null(chunks);
    for (size_t i = 0; i < N; i++) {
        chunks[i] = (fsdpi_chunk){.begin = i, .bytes = 1, .sum = i * 0x9e3779b97f4a7c15u};
    }
    assert_int_equal(FSDP_OK, fsdpi_checksums_file_write("checksums.bin", &many.sums, &problem));
    assert_int_equal(FSDP_OK, fsdpi_state_write(&many, &text, &bytes, &problem));
    test_file_write("state.json", text, bytes);
    assert_int_equal(FSDP_OK, fsdpi_state_read("state.json", &found, &problem));
    assert_int_equal(N, found.sums.files[0].n_chunks);
    assert_memory_equal(chunks, found.sums.files[0].chunks, N * sizeof *chunks);
    fsdpi_state_free(&found);
    free(text);
    free(chunks);
}

static void refused_apart(fsdpi_checksums *sums, const char *says)
{
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_checksums_file_read("checksums.bin", sums, &problem));
    test_contains(problem.text, says);
    for (size_t f = 0; f < sums->n_files; f++) {
        free(sums->files[f].chunks);
        sums->files[f].chunks = NULL;
    }
}

static void a_file_of_chunks_that_is_not_as_it_was_is_refused(void **state)
{
    fsdpi_chunk     chunks[] = {{0, 5, 17}, {5, 6, 18}};
    fsdpi_file_sums file     = {.name = "a", .bytes = 11, .n_chunks = 2, .chunks = chunks};
    fsdpi_checksums sums     = {.n_files = 1, .files = &file, .apart = true}, read;

    (void)state;
    assert_int_equal(FSDP_OK, fsdpi_checksums_file_write("checksums.bin", &sums, &problem));
    char *text = write_text(&sums);
    assert_int_equal(FSDP_OK, get(text, &read));
    free(text);
    const int fd = open("checksums.bin", O_RDWR | O_CLOEXEC);
    for (uint64_t i = 0; i < 32; i++) {
        unsigned char byte;

        assert_int_equal(FSDP_OK, fsdpi_file_read(fd, "checksums.bin", i, &byte, 1, &problem));
        byte ^= 1;
        assert_int_equal(FSDP_OK, fsdpi_file_write(fd, "checksums.bin", i, &byte, 1, &problem));
        refused_apart(&read, "it is damaged");
        byte ^= 1;
        assert_int_equal(FSDP_OK, fsdpi_file_write(fd, "checksums.bin", i, &byte, 1, &problem));
    }
    assert_int_equal(0, ftruncate(fd, 31));
    refused_apart(&read, "a file of 31 bytes; 32 are those of its chunks");
    assert_int_equal(0, ftruncate(fd, 33));
    refused_apart(&read, "a file of 33 bytes");
    (void)close(fd);
    fsdpi_checksums_free(&read);
}

static void refused_reference(const char *members, const char *says)
{
    char            text[512];
    fsdpi_checksums sums;

    (void)snprintf(text, sizeof text, "{\"checksums\":{\"algorithm\":\"XXH3_64\",%s}}", members);
    assert_int_equal(FSDP_ERR_FORMAT, get(text, &sums));
    test_contains(problem.text, says);
}

static void what_names_it_is_checked(void **state)
{
    (void)state;
#define SUM_OF_CHUNKS "\"file\":\"checksums.bin\",\"sum\":\"0123456789abcdef\","
    refused_reference("\"file\":\"../x\",\"sum\":\"0123456789abcdef\",\"files\":[]", "is '../x', not 'checksums.bin'");
    refused_reference("\"file\":\"checksums.bin\",\"files\":[]", "there is no \"sum\"");
    refused_reference("\"file\":\"checksums.bin\",\"sum\":\"x\",\"files\":[]", "a sum has 16 digits");
    refused_reference(SUM_OF_CHUNKS "\"files\":[{\"name\":\"a\",\"bytes\":1,\"chunks\":[]}]", "an array where");
    refused_reference(SUM_OF_CHUNKS "\"files\":[{\"name\":\"a\",\"bytes\":1,\"chunks\":0}]",
                      "0 chunks, of a file of 1");
    refused_reference(SUM_OF_CHUNKS "\"files\":[{\"name\":\"a\",\"bytes\":1,\"chunks\":2}]",
                      "2 chunks, of a file of 1");
    refused_reference(SUM_OF_CHUNKS "\"files\":[{\"name\":\"a\",\"bytes\":99999999999,\"chunks\":99999999}]",
                      "99999999 chunks");
#undef SUM_OF_CHUNKS
}

/* As version 1 of state.json has them. */
static void sums_within_the_text_are_read(void **state)
{
    static const char text[] = "{\"checksums\":{\"algorithm\":\"XXH3_64\",\"files\":[{\"name\":\"a\",\"bytes\":7,"
                               "\"chunks\":[[5,\"ffffffffffffffff\"],[2,\"0000000000000abc\"]]}]}}";
    fsdpi_checksums   read;

    (void)state;
    assert_int_equal(FSDP_OK, get(text, &read));
    assert_false(read.apart);
    assert_int_equal(FSDP_OK, fsdpi_checksums_file_read("not/there", &read, &problem));
    const fsdpi_file_sums *const a = fsdpi_checksums_find(&read, "a");
    assert_int_equal(2, a->n_chunks);
    assert_true(a->chunks[0].sum == UINT64_MAX && a->chunks[1].begin == 5 && a->chunks[1].sum == 0xabc);
    fsdpi_checksums_free(&read);
}

static void a_state_of_version_1_is_read_with_its_chunks(void **state)
{
    /* clang-format off */
    static const char text[] =
        "{\n"
        "  \"format\": \"libfsdp checkpoint\",\n"
        "  \"version\": 1,\n"
        "  \"sum\": \"d0e58ed52c92c50b\",\n"
        "  \"step\": 5,\n"
        "  \"epoch\": 1,\n"
        "  \"sample\": 7,\n"
        "  \"seed\": 18446744073709551615,\n"
        "  \"text\": \"\\\"notes\\\"\",\n"
        "  \"world\": {\"ranks\": 3, \"strategy\": \"FULL_SHARD\"},\n"
        "  \"optimizer\": {\"kind\": \"adamw\", \"steps\": 5},\n"
        "  \"loss_scaler\": null,\n"
        "  \"checksums\": {\n"
        "    \"algorithm\": \"XXH3_64\",\n"
        "    \"files\": [\n"
        "      {\"name\": \"model.safetensors\", \"bytes\": 2776, \"chunks\": [[1000, \"d673ddf4df51b71b\"], [1000, \"6cbec421f465186b\"], [776, \"b5dc66b56dd29a7b\"]]},\n"
        "      {\"name\": \"optimizer.safetensors\", \"bytes\": 2776, \"chunks\": [[1000, \"d673ddf4df51b71b\"], [1000, \"6cbec421f465186b\"], [776, \"b5dc66b56dd29a7b\"]]}\n"
        "    ]\n"
        "  }\n"
        "}\n";
    /* clang-format on */
    fsdpi_state found;

    (void)state;
    test_file_write("old.json", text, sizeof text - 1);
    assert_int_equal(FSDP_OK, fsdpi_state_read("old.json", &found, &problem));
    assert_int_equal(5, found.program.step);
    assert_string_equal("\"notes\"", found.program.text);
    const fsdpi_file_sums *const moments = fsdpi_checksums_find(&found.sums, "optimizer.safetensors");
    assert_int_equal(3, moments->n_chunks);
    assert_true(moments->chunks[2].begin == 2000 && moments->chunks[2].sum == 0xb5dc66b56dd29a7bu);
    fsdpi_state_free(&found);
}

#define SUM "\"0123456789abcdef\""

static void chunks_cover_their_file(void **state)
{
    fsdpi_checksums sums;

    (void)state;
    refused("1", "checksums.files: a whole number where an array");
    refused("[1]", "checksums.files[0]: a whole number where an object");
    refused("[{\"bytes\":0,\"chunks\":[]}]", "there is no \"name\"");
    refused("[{\"name\":\"a\",\"chunks\":[]}]", "there is no \"bytes\"");
    refused("[{\"name\":\"a\",\"bytes\":0}]", "there is no \"chunks\"");
    refused("[{\"name\":\"../a\",\"bytes\":0,\"chunks\":[]}]", "'../a' is not the name of a file in this folder");
    refused("[{\"name\":\"a\",\"bytes\":0,\"chunks\":[]},{\"name\":\"a\",\"bytes\":0,\"chunks\":[]}]",
            "'a' comes twice");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[]}]", "chunks of 0 bytes in all, of a file of 1");
    refused("[{\"name\":\"a\",\"bytes\":2,\"chunks\":[[1," SUM "]]}]", "chunks of 1 bytes in all, of a file of 2");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[2," SUM "]]}]", "a chunk of 2 bytes from byte 0 on");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[1," SUM "],[18446744073709551615," SUM "]]}]", "from byte 1 on");
    refused("[{\"name\":\"a\",\"bytes\":0,\"chunks\":[[0," SUM "]]}]", "chunks have 1 to 4194304 bytes");
    refused("[{\"name\":\"a\",\"bytes\":4194305,\"chunks\":[[4194305," SUM "]]}]", "chunks have 1 to 4194304 bytes");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[1]]}]", "files[0].chunks[0]: a chunk is an array of its bytes");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[1," SUM ",1]]}]", "a chunk is an array");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[-1," SUM "]]}]", "a negative whole number where");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[1,17]]}]", "a whole number where a string");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[1,\"0123456789ABCDEF\"]]}]", "a sum has 16 digits");
    refused("[{\"name\":\"a\",\"bytes\":1,\"chunks\":[[1,\"123456789abcdef\"]]}]", "a sum has 16 digits");
    assert_int_equal(FSDP_ERR_FORMAT, get("{\"checksums\":{\"algorithm\":\"CRC\",\"files\":[]}}", &sums));
    test_contains(problem.text, "checksums by 'CRC'; this version knows XXH3_64");
    assert_int_equal(FSDP_ERR_FORMAT, get("{}", &sums));
}

static void every_damaged_byte_is_found(void **state)
{
    fsdpi_chunk     chunks[] = {{.begin = 0, .bytes = 3}, {.begin = 3, .bytes = 60}, {.begin = 63, .bytes = 37}};
    fsdpi_file_sums sums     = {.name = "f", .bytes = 100, .n_chunks = 3, .chunks = chunks};
    unsigned char   bytes[100];
    int             fd;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * i);
    }
    for (size_t i = 0; i < 3; i++) {
        chunks[i].sum = fsdpi_checksum(bytes + chunks[i].begin, (size_t)chunks[i].bytes);
    }
    test_file_write("f", bytes, sizeof bytes);
    fd = open("f", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(FSDP_OK, fsdpi_file_verify(fd, "f", &sums, &problem));
    for (size_t i = 0; i < sizeof bytes; i++) {
        const unsigned char wrong = bytes[i] ^ (unsigned char)(1u << i % 8);

        assert_int_equal(FSDP_OK, fsdpi_file_write(fd, "f", i, &wrong, 1, &problem));
        assert_int_equal(FSDP_ERR_FORMAT, fsdpi_file_verify(fd, "f", &sums, &problem));
        test_contains(problem.text, i < 3    ? "f: bytes 0 to 3 are damaged"
                                    : i < 63 ? "f: bytes 3 to 63 are damaged"
                                             : "f: bytes 63 to 100 are damaged");
        assert_int_equal(FSDP_OK, fsdpi_file_write(fd, "f", i, &bytes[i], 1, &problem));
    }
    assert_int_equal(0, ftruncate(fd, 99));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_file_verify(fd, "f", &sums, &problem));
    test_contains(problem.text, "a file of 99 bytes; 100 were written");
    (void)close(fd);
}

/* Chunks that are read in several pieces, the last of them short. */
static void a_long_chunk_is_summed_up_as_a_whole(void **state)
{
    const size_t    bytes  = 3 * FSDPI_READ_BYTES + 17;
    fsdpi_chunk     chunk  = {.begin = 5, .bytes = bytes - 5};
    fsdpi_file_sums sums   = {.bytes = bytes, .n_chunks = 1, .chunks = &chunk};
    unsigned char  *values = malloc(bytes), *scratch = malloc(FSDPI_READ_BYTES);

    (void)state;
    assert_true(values != NULL && scratch != NULL);
    for (size_t i = 0; i < bytes; i++) {
        values[i] = (unsigned char)(i * i >> 7);
    }
    chunk.sum = fsdpi_checksum(values + 5, bytes - 5);
    test_file_write("long", values, bytes);
    const int fd = open("long", O_RDWR | O_CLOEXEC);
    assert_int_equal(FSDP_OK, fsdpi_chunk_verify(fd, "long", &sums, 0, scratch, &problem));
    values[bytes - 1] ^= 1;
    assert_int_equal(FSDP_OK, fsdpi_file_write(fd, "long", bytes - 1, values + bytes - 1, 1, &problem));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_chunk_verify(fd, "long", &sums, 0, scratch, &problem));
    (void)close(fd);
    free(values);
    free(scratch);
}

/* Against the definition in checksums.h, word by word, in plain arithmetic. */
static uint64_t slow_sum(const unsigned char *bytes, size_t n)
{
    const uint64_t prime = ((uint64_t)1 << 61) - 1;
    uint64_t       sum   = 0;

    for (size_t i = 0; i < (n + 3) / 4; i++) {
        uint64_t z = i + 0x9e3779b97f4a7c15u;
        z          = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z          = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z          = ((z ^ z >> 31) >> 3) % prime;
        for (size_t k = 0; k < 4 && 4 * i + k < n; k++) {
            for (int bit = 0; bit < 8; bit++) {
                uint64_t term = z;

                for (size_t twice = 0; twice < 8 * k + (size_t)bit; twice++) {
                    term = term * 2 % prime;
                }
                sum = (bytes[4 * i + k] >> bit & 1) != 0 ? (sum + term) % prime : sum;
            }
        }
    }
    return sum;
}

static void sums_of_pieces_add_up_wherever_they_are_cut(void **state)
{
    enum { BYTES = 4099 };
    unsigned char bytes[BYTES];

    (void)state;
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i % 17 == 0 ? 255 : i * i >> 5);
    }
    const uint64_t whole = slow_sum(bytes, BYTES);
    assert_true(whole == fsdpi_checksum_add(0, 0, bytes, BYTES));
    for (size_t cut = 0; cut < BYTES; cut += 1 + cut / 7) {
        const uint64_t front = fsdpi_checksum_add(0, 0, bytes, cut);
        const uint64_t back  = fsdpi_checksum_add(0, cut, bytes + cut, BYTES - cut);

        assert_true(whole == fsdpi_checksum_join(front, back));
        assert_true(whole == fsdpi_checksum_add(back, 0, bytes, cut));
    }
    for (size_t bit = 0; bit < 8u * BYTES; bit += 13) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(whole != fsdpi_checksum_add(0, 0, bytes, BYTES));
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_xxh3),
        cmocka_unit_test(sums_are_written_and_read),
        cmocka_unit_test(more_than_two_million_are_too),
        cmocka_unit_test(a_file_of_chunks_that_is_not_as_it_was_is_refused),
        cmocka_unit_test(what_names_it_is_checked),
        cmocka_unit_test(sums_within_the_text_are_read),
        cmocka_unit_test(a_state_of_version_1_is_read_with_its_chunks),
        cmocka_unit_test(chunks_cover_their_file),
        cmocka_unit_test(every_damaged_byte_is_found),
        cmocka_unit_test(a_long_chunk_is_summed_up_as_a_whole),
        cmocka_unit_test(sums_of_pieces_add_up_wherever_they_are_cut),
    };

    return cmocka_run_group_tests(tests, test_folder_make, test_folder_remove);
}
