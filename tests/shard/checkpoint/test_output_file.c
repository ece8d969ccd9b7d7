/*
 * What is written in pieces of any place, size and alignment is what the file has then, whether whole blocks go past the
 * kernel's cache (the working folder, where that is ext4 or XFS) or all of it through it (/dev/shm).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shard/checkpoint/write/output_file.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

enum { BYTES = 600000, MOST = 70000 };

static unsigned char *room; /* BYTES and an alignment */

static uint64_t next_random(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static void make_file(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(0, ftruncate(fd, BYTES));
    assert_int_equal(0, close(fd));
}

static void assert_file(const char *path, const unsigned char *expected)
{
    static unsigned char found[BYTES + 1];
    FILE                *f = fopen(path, "rbe");

    assert_non_null(f);
    assert_int_equal(BYTES, fread(found, 1, sizeof found, f));
    assert_int_equal(0, fclose(f));
    assert_memory_equal(expected, found, BYTES);
}

/* `shift`: how far memory is from being aligned as the file is. */
static void write_piece(fsdpi_output_file *file, const char *path, size_t offset, size_t n, size_t shift,
                        unsigned char *expected)
{
    unsigned char *piece   = room + (offset + shift) % FSDPI_DIRECT_BYTES;
    fsdpi_problem  problem = {0};

    for (size_t i = 0; i < n; i++) {
        piece[i] = (unsigned char)next_random();
    }
    memcpy(expected + offset, piece, n);
    assert_int_equal(FSDP_OK, fsdpi_output_write(file, path, offset, piece, n, &problem));
}

static fsdpi_output_file open_output(const char *path, void *ends)
{
    fsdpi_output_file file;
    fsdpi_problem     problem = {0};

    assert_int_equal(FSDP_OK, fsdpi_output_open(path, ends, &file, &problem));
    return file;
}

static void close_output(fsdpi_output_file *file, const char *path)
{
    fsdpi_problem problem = {0};

    assert_int_equal(FSDP_OK, fsdpi_output_close(file, path, &problem));
    assert_int_equal(FSDP_OK, fsdpi_output_close(file, path, &problem)); /* nothing is open any more */
}

/* Two writers, as two ranks are, whose pieces of 1 to `most` BYTES meet within blocks. */
static void check_pieces(const char *path, size_t most)
{
    static unsigned char expected[BYTES], ends[2][FSDPI_ENDS_BYTES];

    make_file(path);
    fsdpi_output_file files[2] = {open_output(path, ends[0]), open_output(path, ends[1])};
    for (size_t r = 0, offset = 0; offset < BYTES; r++) {
        const size_t wish = 1 + next_random() % most, left = BYTES - offset, n = wish < left ? wish : left;

        write_piece(&files[r % 2], path, offset, n, r % 5 == 4 ? 512 : 0, expected);
        write_piece(&files[r % 2], path, offset, 0, 0, expected);
        offset += n;
    }
    for (size_t w = 0; w < 2; w++) {
        close_output(&files[w], path);
    }
    assert_file(path, expected);
    assert_int_equal(0, unlink(path));
}

static void check_whole(const char *path)
{
    static unsigned char expected[BYTES], ends[FSDPI_ENDS_BYTES];

    make_file(path);
    fsdpi_output_file file = open_output(path, ends);
    write_piece(&file, path, 0, BYTES, 0, expected);
    close_output(&file, path);
    assert_file(path, expected);
    assert_int_equal(0, unlink(path));
}

/* Pieces with whole blocks and without, more small ones than are kept, and one piece that is the file. */
static void check_in(const char *path)
{
    static const size_t most[] = {MOST, 9000, 5000, 700, 1};

    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        check_pieces(path, most[i]);
    }
    check_whole(path);
}

static void pieces_of_any_place_and_size_are_in_the_file(void **state)
{
    (void)state;
    check_in("pieces");
}

static void so_they_are_where_all_goes_through_the_cache(void **state)
{
    char path[64];

    (void)state;
    (void)snprintf(path, sizeof path, "/dev/shm/fsdp-pieces-%ld", (long)getpid());
    check_in(path);
}

static void what_cannot_be_written_is_an_error(void **state)
{
    static unsigned char ends[FSDPI_ENDS_BYTES];
    fsdpi_output_file    file;
    fsdpi_problem        problem = {0};

    (void)state;
    assert_int_equal(FSDP_ERR_IO, fsdpi_output_open("not/there", ends, &file, &problem));
    test_contains(problem.text, "not/there");
    file = open_output("/dev/full", ends);
    assert_int_equal(FSDP_ERR_IO, fsdpi_output_write(&file, "/dev/full", 0, room, 8192, &problem));
    test_contains(problem.text, "No space left");
    assert_int_equal(FSDP_ERR_IO, fsdpi_output_close(&file, "/dev/full", &problem)); /* no device syncs */
    assert_int_equal(-1, file.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_place_and_size_are_in_the_file),
        cmocka_unit_test(so_they_are_where_all_goes_through_the_cache),
        cmocka_unit_test(what_cannot_be_written_is_an_error),
    };

    room = aligned_alloc(FSDPI_DIRECT_BYTES, (BYTES / FSDPI_DIRECT_BYTES + 2) * FSDPI_DIRECT_BYTES);
    if (room == NULL) {
        return EXIT_FAILURE;
    }
    const int failed = cmocka_run_group_tests(tests, test_folder_make, test_folder_remove);
    free(room);
    return failed;
}
