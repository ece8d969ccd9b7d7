/* What a context records of its operations, in memory that other processes find, and in files. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fsdp/fsdp.h"
#include "lib/context/context.h"
#include "lib/record/layout.h"
#include "lib/record/process.h"
#include "tests/support/mpi_test.h"

static fsdp_context *open_context(int record, const char *folder)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.record     = record;
    config.record_dir = folder;
    config.log_level  = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static uint64_t word(const fsdp_context *ctx, uint64_t sequence, int which)
{
    return atomic_load(&ctx->recorder.entries[(sequence & ctx->recorder.mask) * FSDPI_RECORDED_WORDS + (size_t)which]);
}

static int mark(const fsdp_context *ctx, uint64_t sequence, int which)
{
    return (int)(word(ctx, sequence, FSDPI_WORD_MARKS) >> 8 * which & 0xff);
}

static const char *name(const fsdp_context *ctx, uint64_t sequence, int which)
{
    return ctx->recorder.section->names[mark(ctx, sequence, which)];
}

static uint64_t last(const fsdp_context *ctx)
{
    return atomic_load(&ctx->recorder.section->issued) - 1;
}

static void an_operation_is_kept_with_what_it_was(void **state)
{
    fsdp_context *ctx   = open_context(64, NULL);
    float         value = 1;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_MAX));
    const uint64_t n = last(ctx);
    assert_int_equal(n + 1, word(ctx, n, FSDPI_WORD_SEQUENCE));
    assert_int_equal(0, word(ctx, n, FSDPI_WORD_VERSION) % 2);
    assert_int_equal(FSDPI_RECORDED_DONE, mark(ctx, n, FSDPI_MARK_STATE));
    assert_string_equal("allreduce", name(ctx, n, FSDPI_MARK_COLLECTIVE));
    assert_string_equal("fsdp_allreduce", name(ctx, n, FSDPI_MARK_CALL));
    assert_string_equal(fsdp_last_algorithm(ctx), name(ctx, n, FSDPI_MARK_ALGORITHM));
    assert_int_equal(FSDP_F32 + 1, mark(ctx, n, FSDPI_MARK_DTYPE));
    assert_int_equal(FSDP_MAX + 1, mark(ctx, n, FSDPI_MARK_OP));
    assert_int_equal(1, word(ctx, n, FSDPI_WORD_COUNT));
    assert_int_equal(4, word(ctx, n, FSDPI_WORD_BYTES));
    assert_int_equal(0, word(ctx, n, FSDPI_WORD_ROOT));
    assert_true(word(ctx, n, FSDPI_WORD_ISSUED) <= word(ctx, n, FSDPI_WORD_BEGUN));
    assert_true(word(ctx, n, FSDPI_WORD_BEGUN) <= word(ctx, n, FSDPI_WORD_ENDED));
    assert_int_equal(n + 1, atomic_load(&ctx->recorder.section->ended));

    assert_int_equal(FSDP_OK, fsdp_broadcast(ctx, &value, 1, FSDP_F32, fsdp_size(ctx) - 1));
    assert_int_equal(fsdp_size(ctx), word(ctx, n + 1, FSDPI_WORD_ROOT));
    assert_int_equal(0, mark(ctx, n + 1, FSDPI_MARK_OP));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void the_ring_keeps_the_last_operations(void **state)
{
    enum { KEPT = 16, ASKED = 9, CALLS = 100 };
    fsdp_context *ctx = open_context(ASKED, NULL);

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    }
    assert_int_equal(KEPT, ctx->recorder.mask + 1);
    for (uint64_t n = last(ctx) + 1 - KEPT; n <= last(ctx); n++) {
        assert_int_equal(n + 1, word(ctx, n, FSDPI_WORD_SEQUENCE));
        assert_string_equal("barrier", name(ctx, n, FSDPI_MARK_COLLECTIVE));
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* More operations under way than entries: what ends late leaves those that took its place alone. */
static void more_operations_than_entries_may_be_under_way(void **state)
{
    enum { CALLS = 40 };
    fsdp_context *ctx = open_context(4, NULL);
    fsdp_request *requests[CALLS];

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &requests[i]));
    }
    assert_int_equal(FSDP_OK, fsdp_wait_all(CALLS, requests));
    for (uint64_t n = last(ctx) - 3; n <= last(ctx); n++) {
        assert_int_equal(n + 1, word(ctx, n, FSDPI_WORD_SEQUENCE));
        assert_int_equal(FSDPI_RECORDED_DONE, mark(ctx, n, FSDPI_MARK_STATE));
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Texts at more addresses than are kept: some are found by their address, the others by what they say. */
static void a_name_is_found_wherever_it_lies(void **state)
{
    enum { TEXTS = 4 };
    static char   names[2 * FSDPI_NAMES_HASHED][8];
    fsdp_context *ctx = open_context(16, NULL);

    (void)state;
    for (int i = 0; i < 2 * FSDPI_NAMES_HASHED; i++) {
        (void)snprintf(names[i], sizeof names[i], "name %d", i % TEXTS);
        const uint8_t number = fsdpi_recorder_name(&ctx->recorder, names[i]);
        assert_string_equal(names[i], ctx->recorder.section->names[number]);
        assert_int_equal(fsdpi_recorder_name(&ctx->recorder, names[i % TEXTS]), number);
    }
    assert_int_equal(FSDPI_NAMES_HASHED - 1, ctx->recorder.names.n);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_unit_and_its_pass_are_in_the_record(void **state)
{
    fsdp_context *ctx = open_context(256, NULL);
    fsdp_model   *model;
    fsdp_unit    *unit;
    fsdp_tensor   tensor = {.name = "w", .n_dims = 1, .shape = {4096}};
    int           found  = 0;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "h.4", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(unit));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(unit));
    for (uint64_t n = 0; n <= last(ctx); n++) {
        char label[FSDPI_RECORDED_LABEL_BYTES];
        for (int i = 0; i < 6; i++) {
            const uint64_t text = word(ctx, n, FSDPI_WORD_LABEL + i);
            memcpy(label + 8 * i, &text, sizeof text);
        }
        found += strcmp(label, "h.4") == 0 && strcmp(name(ctx, n, FSDPI_MARK_CALL), "fsdp_unit_begin_forward") == 0;
    }
    assert_true(found > 0);
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void what_a_rank_is_doing_is_told(void **state)
{
    fsdp_context *ctx = open_context(64, NULL);
    fsdp_request *request;

    (void)state;
    const fsdpi_recorded_section *section = ctx->recorder.section;
    assert_int_equal(fsdp_rank(ctx), section->rank);
    assert_int_equal(getpid(), section->pid);
    assert_int_equal('R', fsdpi_process_state(section->pid, section->started));
    assert_int_equal(0, fsdpi_process_state(section->pid, section->started + 1)); /* a later process of that number */
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    assert_int_equal(FSDPI_DOING_USER, atomic_load(&section->doing) >> FSDPI_DOING_SHIFT);
    assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &request));
    assert_int_equal(FSDPI_DOING_USER, atomic_load(&section->doing) >> FSDPI_DOING_SHIFT);
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    const uint64_t since = atomic_load(&section->since);
    assert_in_range(since, word(ctx, last(ctx), FSDPI_WORD_ISSUED), fsdpi_ticks(ctx->recorder.clock));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* As another process would find it: by the links of /proc. */
static int open_from_outside(uint64_t id)
{
    for (int fd = 0; fd < 1024; fd++) {
        char                  path[64], link[128] = "";
        fsdpi_recorded_header header;

        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
        if (readlink(path, link, sizeof link - 1) < 0 || strstr(link, "/memfd:" FSDPI_RECORDED_NAME) != link) {
            continue;
        }
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(file >= 0);
        assert_int_equal(sizeof header, pread(file, &header, sizeof header, 0));
        if (header.id == id) {
            return file;
        }
        (void)close(file);
    }
    return -1;
}

static void the_record_of_a_node_is_found_from_outside(void **state)
{
    fsdp_context          *ctx = open_context(64, NULL);
    fsdpi_recorded_header *header;
    struct stat            about;
    int                    seen = 0;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    const int file = open_from_outside(fsdpi_recorder_header(&ctx->recorder)->id);
    assert_true(file >= 0);
    assert_int_equal(0, fstat(file, &about));
    header = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
    assert_ptr_not_equal(MAP_FAILED, header);
    assert_memory_equal(FSDPI_RECORDED_MAGIC, header->magic, 8);
    assert_int_equal(fsdp_size(ctx), header->size);
    assert_int_equal(fsdp_node_count(ctx), header->nodes);
    assert_int_equal(fsdp_node_size(ctx), header->sections);
    for (uint32_t i = 0; i < header->sections; i++) {
        const unsigned char *at =
            (const unsigned char *)header + FSDPI_RECORDED_HEAD_BYTES + (size_t)i * header->section_bytes;
        const fsdpi_recorded_section *section = (const fsdpi_recorded_section *)(const void *)at;
        seen += section->rank >= 0 && section->pid > 0;
    }
    assert_int_equal(header->sections, seen);
    (void)munmap(header, (size_t)about.st_size);
    (void)close(file);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void record_0_is_none(void **state)
{
    fsdp_context *ctx = open_context(0, NULL);

    (void)state;
    assert_null(ctx->recorder.map);
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx));
    assert_int_equal(FSDP_ERR_STATE, fsdp_record_write(ctx, "."));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* A folder of this rank alone, so that ranks do not meet in it. */
static void make_folder(char folder[192])
{
    const char *where = getenv("TMPDIR");

    (void)snprintf(folder, 192, "%.160s/record-XXXXXX", where != NULL ? where : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static void file_of(const fsdp_context *ctx, const char *folder, char path[320])
{
    const fsdpi_recorded_section *section = ctx->recorder.section;
    const char                   *host    = fsdpi_recorder_header(&ctx->recorder)->host;

    if (section->number == 1) {
        (void)snprintf(path, 320, "%s/%s.%d.record", folder, host, section->file_rank);
    } else {
        (void)snprintf(path, 320, "%s/%s.%d.%u.record", folder, host, section->file_rank, section->number);
    }
}

/* Reads a whole file, and removes it and its folder. */
static void take_file(const char *path, const char *folder, fsdpi_recorded_header *header)
{
    fsdpi_recorded_trailer trailer;
    struct stat            about;
    FILE                  *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(0, fstat(fileno(file), &about));
    assert_int_equal(1, fread(header, sizeof *header, 1, file));
    assert_int_equal(0, fseek(file, -(long)sizeof trailer, SEEK_END));
    assert_int_equal(1, fread(&trailer, sizeof trailer, 1, file));
    assert_memory_equal(FSDPI_RECORDED_TRAILER, trailer.magic, 8);
    assert_int_equal(about.st_size, trailer.bytes);
    assert_int_equal(about.st_size, FSDPI_RECORDED_HEAD_BYTES + header->section_bytes + sizeof trailer);
    (void)fclose(file);
    (void)unlink(path);
    (void)rmdir(folder);
}

static void a_record_is_written_when_it_is_asked_for(void **state)
{
    fsdp_context         *ctx = open_context(64, NULL);
    fsdpi_recorded_header header;
    char                  folder[192], path[320];

    (void)state;
    make_folder(folder);
    assert_int_equal(FSDP_ERR_ARG, fsdp_record_write(NULL, folder));
    assert_int_equal(FSDP_ERR_ARG, fsdp_record_write(ctx, NULL));
    assert_int_equal(FSDP_ERR_IO, fsdp_record_write(ctx, "/proc/no-such-folder"));
    assert_int_equal(FSDP_OK, fsdp_record_write(ctx, folder));
    file_of(ctx, folder, path);
    take_file(path, folder, &header);
    assert_int_equal(FSDPI_CAUSE_ASKED, header.cause);
    assert_int_equal(fsdp_rank(ctx), header.written_by);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_folder_that_cannot_be_used_is_refused(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.record_dir = "/proc/no-such-folder";
    config.log_level  = FSDP_LOG_OFF;
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_non_null(strstr(fsdp_last_error(NULL), "FSDP_RECORD_DIR"));
}

static void ranks_that_call_different_things_are_in_the_files(void **state)
{
    char                  folder[192], path[320];
    fsdpi_recorded_header header;
    int32_t               value = 0;

    (void)state;
    if (fsdp_test_size() == 1) {
        return;
    }
    make_folder(folder);
    fsdp_context *ctx = open_context(64, folder);
    if (fsdp_rank(ctx) == 0) {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_barrier(ctx));
    } else {
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM));
    }
    assert_int_equal(FSDPI_RECORDED_FAILED, mark(ctx, last(ctx), FSDPI_MARK_STATE));
    assert_int_equal(FSDP_ERR_MISMATCH, mark(ctx, last(ctx), FSDPI_MARK_STATUS));
    assert_int_equal(FSDP_OK, fsdp_barrier(ctx)); /* the context is still good */
    file_of(ctx, folder, path);
    take_file(path, folder, &header);
    assert_int_equal(FSDPI_CAUSE_FAILED, header.cause);
    assert_non_null(strstr(header.reason, "fsdp_barrier"));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static volatile sig_atomic_t handled;

static void count_signal(int number)
{
    handled += number == SIGFPE;
}

/* SIGTERM is the program's own: it stays so. SIGFPE goes on to the handler that it had. */
static void a_signal_writes_the_record_and_goes_on(void **state)
{
    char                  folder[192], path[320];
    fsdpi_recorded_header header;
    struct sigaction      now;

    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* which keeps SIGFPE to itself */
#endif
    make_folder(folder);
    void (*const fpe_before)(int)  = signal(SIGFPE, count_signal);
    void (*const term_before)(int) = signal(SIGTERM, count_signal);
    fsdp_context *ctx              = open_context(64, folder);
    assert_int_equal(0, sigaction(SIGTERM, NULL, &now));
    assert_ptr_equal(count_signal, now.sa_handler);
    (void)raise(SIGFPE);
    assert_int_equal(1, handled);
    file_of(ctx, folder, path);
    take_file(path, folder, &header);
    assert_int_equal(FSDPI_CAUSE_SIGNAL, header.cause);
    assert_int_equal(SIGFPE, header.signal);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_int_equal(0, sigaction(SIGFPE, NULL, &now));
    assert_ptr_equal(count_signal, now.sa_handler); /* as it was */
    (void)signal(SIGFPE, fpe_before);
    (void)signal(SIGTERM, term_before);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_is_kept_with_what_it_was),
        cmocka_unit_test(the_ring_keeps_the_last_operations),
        cmocka_unit_test(a_name_is_found_wherever_it_lies),
        cmocka_unit_test(more_operations_than_entries_may_be_under_way),
        cmocka_unit_test(a_unit_and_its_pass_are_in_the_record),
        cmocka_unit_test(what_a_rank_is_doing_is_told),
        cmocka_unit_test(the_record_of_a_node_is_found_from_outside),
        cmocka_unit_test(record_0_is_none),
        cmocka_unit_test(a_record_is_written_when_it_is_asked_for),
        cmocka_unit_test(a_folder_that_cannot_be_used_is_refused),
        cmocka_unit_test(ranks_that_call_different_things_are_in_the_files),
        cmocka_unit_test(a_signal_writes_the_record_and_goes_on),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
