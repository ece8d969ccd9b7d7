#include "shard/checkpoint/format/checksums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"

#define ALGORITHM "XXH3_64"
#define ADDS_UP   "SUM61"

uint64_t fsdpi_checksum(const void *bytes, size_t n_bytes)
{
    return XXH3_64bits(bytes, n_bytes);
}

/* ---- Sums that add up ---- */

__extension__ typedef unsigned __int128 wide;

#define PRIME (((uint64_t)1 << 61) - 1)

enum { WORD = 4 }; /* BYTES */

/* What word number `i` is multiplied with. */
static uint64_t key_of(uint64_t i)
{
    uint64_t z = i + 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) >> 3;
}

/* Modulo PRIME, of less than 2^122. */
static uint64_t reduce(wide sum)
{
    uint64_t once = (uint64_t)(sum & PRIME) + (uint64_t)(sum >> 61); /* below 2^62 */

    once = (once & PRIME) + (once >> 61);
    return once >= PRIME ? once - PRIME : once;
}

uint64_t fsdpi_checksum_join(uint64_t a, uint64_t b)
{
    return reduce((wide)a + b);
}

/* Bytes `first` to `first + n` of one word. */
static wide part_of_word(uint64_t i, size_t first, const unsigned char *bytes, size_t n)
{
    unsigned char padded[WORD] = {0};
    uint32_t      word;

    memcpy(padded + first, bytes, n);
    memcpy(&word, padded, WORD);
    return (wide)key_of(i) * word;
}

/* Of at most FSDPI_CHUNK_MOST: 2^20 products below 2^93, and two more. */
static uint64_t add_piece(uint64_t before, uint64_t at, const unsigned char *bytes, size_t n_bytes)
{
    const size_t beyond = (size_t)(at % WORD);
    wide         sum    = before;
    uint64_t     i      = at / WORD;

    if (beyond > 0) {
        const size_t n = WORD - beyond < n_bytes ? WORD - beyond : n_bytes;

        sum += part_of_word(i++, beyond, bytes, n);
        bytes += n;
        n_bytes -= n;
    }
    for (; n_bytes >= WORD; n_bytes -= WORD, bytes += WORD, i++) {
        uint32_t word;

        memcpy(&word, bytes, WORD);
        sum += (wide)key_of(i) * word;
    }
    return reduce(n_bytes > 0 ? sum + part_of_word(i, 0, bytes, n_bytes) : sum);
}

uint64_t fsdpi_checksum_add(uint64_t sum, uint64_t at, const void *bytes, size_t n_bytes)
{
    const unsigned char *piece = bytes;
    size_t               n;

    for (; n_bytes > 0; n_bytes -= n, piece += n, at += n) {
        n   = n_bytes < FSDPI_CHUNK_MOST ? n_bytes : FSDPI_CHUNK_MOST;
        sum = add_piece(sum, at, piece, n);
    }
    return sum;
}

/* ---- Writing ---- */

static void put_file(fsdpi_json_writer *writer, const fsdpi_file_sums *sums)
{
    fsdpi_json_begin_object(writer, NULL, true);
    fsdpi_json_put_string(writer, "name", sums->name);
    if (sums->adds_up) {
        fsdpi_json_put_string(writer, "algorithm", ADDS_UP);
    }
    fsdpi_json_put_u64(writer, "bytes", sums->bytes);
    fsdpi_json_put_u64(writer, "chunks", sums->n_chunks);
    fsdpi_json_end_object(writer);
}

void fsdpi_checksums_put(fsdpi_json_writer *writer, const fsdpi_checksums *sums)
{
    char digits[17];

    (void)snprintf(digits, sizeof digits, "%016" PRIx64, sums->sum_of_chunks);
    fsdpi_json_begin_object(writer, "checksums", false);
    fsdpi_json_put_string(writer, "algorithm", ALGORITHM);
    fsdpi_json_begin_array(writer, "files", false);
    for (size_t i = 0; i < sums->n_files; i++) {
        put_file(writer, &sums->files[i]);
    }
    fsdpi_json_end_array(writer);
    fsdpi_json_put_string(writer, "file", FSDPI_CHECKSUMS_FILE);
    fsdpi_json_put_string(writer, "sum", digits);
    fsdpi_json_end_object(writer);
}

/* ---- Reading ---- */

/* 16 digits of base 16, of lower case as they are written. */
static bool read_sum(const char *digits, uint64_t *sum)
{
    char *end;

    if (strlen(digits) != 16 || strspn(digits, "0123456789abcdef") != 16) {
        return false;
    }
    *sum = strtoull(digits, &end, 16);
    return true;
}

static fsdp_status get_chunk(const fsdpi_json_value *pair, fsdpi_file_sums *file, fsdpi_problem *problem)
{
    const uint64_t begin =
        file->n_chunks > 0 ? file->chunks[file->n_chunks - 1].begin + file->chunks[file->n_chunks - 1].bytes : 0;
    fsdpi_chunk chunk = {.begin = begin};
    const char *digits;

    if (fsdpi_json_kind_of(pair) != FSDPI_JSON_ARRAY || fsdpi_json_count(pair) != 2) {
        return fsdpi_json_refuse_value(pair, problem, "a chunk is an array of its bytes and its sum");
    }
    FSDP_TRY(fsdpi_json_get_u64(fsdpi_json_item(pair, 0), &chunk.bytes, problem));
    FSDP_TRY(fsdpi_json_get_string(fsdpi_json_item(pair, 1), &digits, problem));
    if (chunk.bytes == 0 || chunk.bytes > FSDPI_CHUNK_MOST || chunk.bytes > file->bytes - begin) {
        return fsdpi_json_refuse_value(pair, problem,
                                       "a chunk of %" PRIu64 " bytes from byte %" PRIu64 " on, in a file of %" PRIu64
                                       "; chunks have 1 to %zu bytes",
                                       chunk.bytes, begin, file->bytes, FSDPI_CHUNK_MOST);
    }
    if (!read_sum(digits, &chunk.sum)) {
        return fsdpi_json_refuse_value(fsdpi_json_item(pair, 1), problem, "a sum has 16 digits from 0 to f");
    }
    file->chunks[file->n_chunks++] = chunk;
    return FSDP_OK;
}

static fsdp_status get_chunks(const fsdpi_json_value *chunks, fsdpi_file_sums *file, fsdpi_problem *problem)
{
    const size_t n = fsdpi_json_count(chunks);

    file->chunks = calloc(n + 1, sizeof *file->chunks);
    if (file->chunks == NULL) {
        return fsdpi_problem_memory(problem, file->name, (n + 1) * sizeof *file->chunks);
    }
    for (size_t i = 0; i < n; i++) {
        FSDP_TRY(get_chunk(fsdpi_json_item(chunks, i), file, problem));
    }
    const uint64_t end = n > 0 ? file->chunks[n - 1].begin + file->chunks[n - 1].bytes : 0;
    if (end != file->bytes) {
        return fsdpi_json_refuse_value(chunks, problem, "chunks of %" PRIu64 " bytes in all, of a file of %" PRIu64,
                                       end, file->bytes);
    }
    return FSDP_OK;
}

/* How many there are: each byte is in one, and the file of chunks is of a length that is read. */
static fsdp_status count_chunks(const fsdpi_json_value *count, fsdpi_file_sums *file, fsdpi_problem *problem)
{
    uint64_t n;

    FSDP_TRY(fsdpi_json_get_u64(count, &n, problem));
    if (n > FSDPI_CHECKSUMS_FILE_MOST / FSDPI_STORED_CHUNK_BYTES || n > file->bytes || (n == 0 && file->bytes > 0)) {
        return fsdpi_json_refuse_value(count, problem, "%" PRIu64 " chunks, of a file of %" PRIu64 " bytes", n,
                                       file->bytes);
    }
    file->n_chunks = (size_t)n;
    return FSDP_OK;
}

/* A string, and the value that holds it, for what refuses it. */
static fsdp_status require_text(const fsdpi_json_value *object, const char *name, const fsdpi_json_value **value,
                                const char **text, fsdpi_problem *problem)
{
    FSDP_TRY(fsdpi_json_require(object, name, FSDPI_JSON_STRING, value, problem));
    return fsdpi_json_get_string(*value, text, problem);
}

static fsdp_status get_name(const fsdpi_json_value *object, const fsdpi_checksums *sums, const char **name,
                            fsdpi_problem *problem)
{
    const fsdpi_json_value *value;

    FSDP_TRY(require_text(object, "name", &value, name, problem));
    if (strchr(*name, '/') != NULL || **name == 0 || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0) {
        return fsdpi_json_refuse_value(value, problem, "'%.200s' is not the name of a file in this folder", *name);
    }
    return fsdpi_checksums_find(sums, *name) == NULL
               ? FSDP_OK
               : fsdpi_json_refuse_value(value, problem, "the file '%.200s' comes twice", *name);
}

/* Of one file, where it has one of its own. */
static fsdp_status get_algorithm(const fsdpi_json_value *object, fsdpi_file_sums *file, fsdpi_problem *problem)
{
    const fsdpi_json_value *value;
    const char             *name;

    if (fsdpi_json_member(object, "algorithm") == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(require_text(object, "algorithm", &value, &name, problem));
    file->adds_up = strcmp(name, ADDS_UP) == 0;
    return file->adds_up || strcmp(name, ALGORITHM) == 0
               ? FSDP_OK
               : fsdpi_json_refuse_value(value, problem,
                                         "checksums by '%.40s'; this version knows " ALGORITHM " and " ADDS_UP, name);
}

static fsdp_status get_file(const fsdpi_json_value *object, fsdpi_checksums *sums, fsdpi_problem *problem)
{
    const fsdpi_json_value *bytes, *chunks;
    fsdpi_file_sums *const  file = &sums->files[sums->n_files];
    const char             *name;

    FSDP_TRY(get_name(object, sums, &name, problem));
    file->name = strdup(name);
    if (file->name == NULL) {
        return fsdpi_problem_memory(problem, name, strlen(name) + 1);
    }
    sums->n_files++;
    FSDP_TRY(get_algorithm(object, file, problem));
    FSDP_TRY(fsdpi_json_require(object, "bytes", FSDPI_JSON_UNSIGNED, &bytes, problem));
    FSDP_TRY(
        fsdpi_json_require(object, "chunks", sums->apart ? FSDPI_JSON_UNSIGNED : FSDPI_JSON_ARRAY, &chunks, problem));
    FSDP_TRY(fsdpi_json_get_u64(bytes, &file->bytes, problem));
    return sums->apart ? count_chunks(chunks, file, problem) : get_chunks(chunks, file, problem);
}

static fsdp_status check_algorithm(const fsdpi_json_value *object, fsdpi_problem *problem)
{
    const fsdpi_json_value *value;
    const char             *name;

    FSDP_TRY(require_text(object, "algorithm", &value, &name, problem));
    return strcmp(name, ALGORITHM) == 0
               ? FSDP_OK
               : fsdpi_json_refuse_value(value, problem, "checksums by '%.40s'; this version knows " ALGORITHM, name);
}

/* The file that chunks are in, if they are apart. */
static fsdp_status get_reference(const fsdpi_json_value *object, fsdpi_checksums *sums, fsdpi_problem *problem)
{
    const fsdpi_json_value *value;
    const char             *text;

    if (fsdpi_json_member(object, "file") == NULL) {
        return FSDP_OK;
    }
    FSDP_TRY(require_text(object, "file", &value, &text, problem));
    if (strcmp(text, FSDPI_CHECKSUMS_FILE) != 0) {
        return fsdpi_json_refuse_value(value, problem, "is '%.200s', not '" FSDPI_CHECKSUMS_FILE "'", text);
    }
    sums->apart = true;
    FSDP_TRY(require_text(object, "sum", &value, &text, problem));
    return read_sum(text, &sums->sum_of_chunks)
               ? FSDP_OK
               : fsdpi_json_refuse_value(value, problem, "a sum has 16 digits from 0 to f");
}

static fsdp_status get_files(const fsdpi_json_value *object, fsdpi_checksums *sums, fsdpi_problem *problem)
{
    const fsdpi_json_value *members, *files;

    FSDP_TRY(fsdpi_json_require(object, "checksums", FSDPI_JSON_OBJECT, &members, problem));
    FSDP_TRY(check_algorithm(members, problem));
    FSDP_TRY(get_reference(members, sums, problem));
    FSDP_TRY(fsdpi_json_require(members, "files", FSDPI_JSON_ARRAY, &files, problem));
    const size_t n = fsdpi_json_count(files);
    sums->files    = calloc(n + 1, sizeof *sums->files);
    if (sums->files == NULL) {
        return fsdpi_problem_memory(problem, "checksums", (n + 1) * sizeof *sums->files);
    }
    for (size_t i = 0; i < n; i++) {
        FSDP_TRY(get_file(fsdpi_json_item(files, i), sums, problem));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_checksums_get(const fsdpi_json_value *object, fsdpi_checksums *sums, fsdpi_problem *problem)
{
    fsdp_status status;

    *sums  = (fsdpi_checksums){0};
    status = get_files(object, sums, problem);
    if (status != FSDP_OK) {
        fsdpi_checksums_free(sums);
    }
    return status;
}

void fsdpi_checksums_free(fsdpi_checksums *sums)
{
    for (size_t i = 0; i < sums->n_files; i++) {
        free(sums->files[i].name);
        free(sums->files[i].chunks);
    }
    free(sums->files);
    *sums = (fsdpi_checksums){0};
}

const fsdpi_file_sums *fsdpi_checksums_find(const fsdpi_checksums *sums, const char *name)
{
    for (size_t i = 0; i < sums->n_files; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): each has one */
        if (strcmp(sums->files[i].name, name) == 0) {
            return &sums->files[i];
        }
    }
    return NULL;
}

/* ---- Checking ---- */

size_t fsdpi_chunk_of(const fsdpi_file_sums *sums, uint64_t at)
{
    size_t low = 0, high = sums->n_chunks;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (sums->chunks[middle].begin <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static fsdp_status sum_up(int fd, const char *path, const fsdpi_chunk *chunk, bool adds_up, void *scratch,
                          uint64_t *sum, fsdpi_problem *problem)
{
    XXH3_state_t state;
    uint64_t     added = 0;
    size_t       bytes;

    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset(&state);
    for (uint64_t at = 0; at < chunk->bytes; at += bytes) {
        bytes = chunk->bytes - at < FSDPI_READ_BYTES ? (size_t)(chunk->bytes - at) : FSDPI_READ_BYTES;
        FSDP_TRY(fsdpi_file_read(fd, path, chunk->begin + at, scratch, bytes, problem));
        if (adds_up) {
            added = fsdpi_checksum_add(added, chunk->begin + at, scratch, bytes);
        } else {
            (void)XXH3_64bits_update(&state, scratch, bytes);
        }
    }
    *sum = adds_up ? added : XXH3_64bits_digest(&state);
    return FSDP_OK;
}

fsdp_status fsdpi_chunk_verify(int fd, const char *path, const fsdpi_file_sums *sums, size_t i, void *scratch,
                               fsdpi_problem *problem)
{
    const fsdpi_chunk *chunk = &sums->chunks[i];
    uint64_t           sum;

    FSDP_TRY(sum_up(fd, path, chunk, sums->adds_up, scratch, &sum, problem));
    if (sum == chunk->sum) {
        return FSDP_OK;
    }
    return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                             "%s: bytes %" PRIu64 " to %" PRIu64 " are damaged: their checksum is %016" PRIx64
                             ", and was %016" PRIx64 " when they were written",
                             path, chunk->begin, chunk->begin + chunk->bytes, sum, chunk->sum);
}

fsdp_status fsdpi_file_verify(int fd, const char *path, const fsdpi_file_sums *sums, fsdpi_problem *problem)
{
    struct stat about;
    fsdp_status status = FSDP_OK;
    char       *scratch;

    if (fstat(fd, &about) != 0) {
        return fsdpi_problem_errno(problem, path, "look at");
    }
    if ((uint64_t)about.st_size != sums->bytes) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: a file of %lld bytes; %" PRIu64 " were written", path,
                                 (long long)about.st_size, sums->bytes);
    }
    scratch = malloc(FSDPI_READ_BYTES);
    if (scratch == NULL) {
        return fsdpi_problem_memory(problem, path, FSDPI_READ_BYTES);
    }
    for (size_t i = 0; i < sums->n_chunks && status == FSDP_OK; i++) {
        status = fsdpi_chunk_verify(fd, path, sums, i, scratch, problem);
    }
    free(scratch);
    return status;
}
