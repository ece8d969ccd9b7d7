#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard/checkpoint/format/tensor_files.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

static fsdpi_problem problem;

#define A "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}"
#define B                                                                                                              \
    "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_"    \
    "offsets\":[0,1]}}"

static void write_text(const char *name, const char *text)
{
    test_file_write(name, text, strlen(text));
}

static void refused(const char *path, fsdp_status status, const char *says)
{
    fsdpi_tensor_files files;

    assert_int_equal(status, fsdpi_tensor_files_open(path, &files, &problem));
    assert_null(files.files);
    test_contains(problem.text, says);
}

static void index_refused(const char *text, const char *says)
{
    write_text("bad.index.json", text);
    refused("bad.index.json", FSDP_ERR_FORMAT, says);
}

static void tensors_of_one_file_are_read(void **state)
{
    fsdpi_tensor_files files;
    unsigned char      bytes[4];

    (void)state;
    test_safetensors_write("b.safetensors", B, 5);
    assert_int_equal(FSDP_OK, fsdpi_tensor_files_open("b.safetensors", &files, &problem));
    assert_int_equal(1, files.n_files);
    assert_int_equal(2, files.n_tensors);
    const fsdpi_placed_tensor *const b = fsdpi_tensor_files_find(&files, "b");
    assert_int_equal(FSDP_OK, fsdpi_tensor_read(b, 0, bytes, 4, &problem));
    assert_memory_equal("\1\2\3\4", bytes, 4);
    assert_int_equal(FSDP_OK, fsdpi_tensor_read(b, 3, bytes, 1, &problem));
    assert_int_equal(4, bytes[0]);
    assert_null(fsdpi_tensor_files_find(&files, "x"));

    /* whoever cuts the file short under a reader is noticed */
    assert_int_equal(0, truncate("b.safetensors", (off_t)files.files[0].header.file_bytes - 1));
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_tensor_read(b, 0, bytes, 4, &problem));
    test_contains(problem.text, "b.safetensors: the file ends at byte");
    fsdpi_tensor_files_close(&files);
}

static void tensors_of_several_files_are_read(void **state)
{
    fsdpi_tensor_files files;
    unsigned char      byte;

    (void)state;
    assert_int_equal(0, mkdir("several", 0700));
    test_safetensors_write("several/one", A, 2);
    test_safetensors_write("several/two", B, 5);
    write_text(
        "several/model.safetensors.index.json",
        "{\"metadata\":{\"total_size\":7,\"x\":[null]},\"weight_map\":{\"c\":\"two\",\"a\":\"one\",\"b\":\"two\"}}");
    assert_int_equal(FSDP_OK, fsdpi_tensor_files_open_in("several", "model", &files, &problem));
    assert_int_equal(2, files.n_files);
    assert_int_equal(3, files.n_tensors);
    assert_int_equal(FSDP_OK, fsdpi_tensor_read(fsdpi_tensor_files_find(&files, "a"), 1, &byte, 1, &problem));
    assert_int_equal(1, byte);
    assert_int_equal(FSDP_OK, fsdpi_tensor_read(fsdpi_tensor_files_find(&files, "b"), 3, &byte, 1, &problem));
    assert_int_equal(4, byte);
    fsdpi_tensor_files_close(&files);

    test_safetensors_write("several/model.safetensors", A, 2);
    assert_int_equal(FSDP_OK, fsdpi_tensor_files_open_in("several", "model", &files, &problem));
    assert_int_equal(1, files.n_tensors);
    fsdpi_tensor_files_close(&files);
    assert_int_equal(FSDP_ERR_IO, fsdpi_tensor_files_open_in("several", "other", &files, &problem));
    test_contains(problem.text, "several/other.safetensors: cannot open: No such file");
}

static void what_is_no_file_of_tensors_is_refused(void **state)
{
    (void)state;
    refused("nowhere", FSDP_ERR_IO, "nowhere: cannot open: No such file or directory");
    refused(".", FSDP_ERR_FORMAT, ".: not a regular file");
    assert_int_equal(0, mkfifo("fifo", 0600));
    refused("fifo", FSDP_ERR_FORMAT, "fifo: not a regular file");
    write_text("short", "1234567");
    refused("short", FSDP_ERR_FORMAT, "short: a file of 7 bytes");
    write_text("elf", "\177ELF\2\1\1\1 and more");
    refused("elf", FSDP_ERR_FORMAT, "Is it a safetensors file?");
    test_safetensors_write("long", A, 3);
    refused("long", FSDP_ERR_FORMAT, "long: the tensors end at byte 2 of the data, which has 3");
}

static void an_index_says_what_is_in_its_files(void **state)
{
    (void)state;
    test_safetensors_write("one", A, 2);
    test_safetensors_write("two", B, 5);
    index_refused("[]", "bad.index.json: byte 0: an index is an object");
    index_refused("{}", "there is no \"weight_map\"");
    index_refused("{\"weight_map\":[]}", "byte 1: \"weight_map\" is no object");
    index_refused("{\"weight_map\":{},\"weight_map\":{}}", "\"weight_map\" comes twice");
    index_refused("{\"weight_map\":{},\"metadata\":{},\"metadata\":{}}", "member 'metadata' of an index comes twice");
    index_refused("{\"weight_map\":{},\"x\":{}}", "member 'x' of an index is unknown");
    index_refused("{\"weight_map\":{\"a\":1}}", "the file of tensor 'a' is no string");
    index_refused("{\"weight_map\":{\"a\":\"one\"}} x", "'x' where the end");
    index_refused("{\"weight_map\":{\"a\":\"one\",\"a\":\"one\"}}", "tensor 'a' comes twice");
    index_refused("{\"weight_map\":{\"a\":\"one\",\"a\":\"two\"}}", "tensor 'a' comes twice");
    index_refused("{\"weight_map\":{\"x\":\"one\"}}", "tensor 'x' is not in one");
    index_refused("{\"weight_map\":{\"b\":\"two\"}}", "tensor 'c' of two is not in the map");
    index_refused("{\"weight_map\":{\"c\":\"two\"}}", "tensor 'b' of two is not in the map");
    index_refused("{\"weight_map\":{\"a\":\"one\",\"b\":\"two\",\"c\":\"one\"}}", "tensor 'c' is not in one");
    test_safetensors_write("zzz", "{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    index_refused("{\"weight_map\":{\"b\":\"two\",\"c\":\"zzz\"}}", "tensor 'c' of two is not in the map");
    write_text("bad.index.json", "{\"weight_map\":{\"a\":\"none\"}}");
    refused("bad.index.json", FSDP_ERR_IO, "none: cannot open");
}

static void an_index_does_not_lead_out_of_its_folder(void **state)
{
    static const char *const outside[] = {"../one", "/etc/passwd", "", ".", "..", "x/one", "./one"};

    (void)state;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        char text[128];

        (void)snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", outside[i]);
        index_refused(text, "only files beside the index are read");
    }
}

static void write_planned(const fsdpi_file_plan *plan, const char *folder)
{
    for (size_t i = 0; i < plan->n_files; i++) {
        const fsdpi_planned_file *const file  = &plan->files[i];
        unsigned char *const            bytes = calloc(1, (size_t)file->file_bytes);
        char                            path[256];

        memcpy(bytes, file->header, file->header_bytes);
        (void)snprintf(path, sizeof path, "%s/%s", folder, file->name);
        test_file_write(path, bytes, (size_t)file->file_bytes);
        free(bytes);
    }
    if (plan->n_files > 1) {
        char path[256];

        (void)snprintf(path, sizeof path, "%s/%s", folder, plan->index_name);
        test_file_write(path, plan->index, plan->index_bytes);
    }
}

static void a_plan_divides_tensors_over_files(void **state)
{
    static const uint64_t dims[]    = {10, 100};
    fsdpi_tensor_info     tensors[] = {{.name = "a", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims},
                                       {.name = "b", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims},
                                       {.name = "c", .dtype = FSDPI_STORED_F32, .n_dims = 2, .dims = dims},
                                       {.name = "d", .dtype = FSDPI_STORED_U8, .n_dims = 1, .dims = dims},
                                       {.name = "e", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims}};
    const struct {
        uint64_t most;
        size_t   n_files, first[6];
    } cases[] = {{0, 1, {0, 5}},
                 {80, 3, {0, 2, 3, 5}},
                 {90, 3, {0, 2, 3, 5}},
                 {49, 5, {0, 1, 2, 3, 4, 5}},
                 {1, 5, {0, 1, 2, 3, 4, 5}},
                 {4130, 1, {0, 5}},
                 {4129, 2, {0, 4, 5}}};

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fsdpi_file_plan    plan;
        fsdpi_tensor_files files;
        char               folder[] = "plan0";

        folder[4] = (char)('0' + k);
        assert_int_equal(FSDP_OK, fsdpi_file_plan_make("model", tensors, 5, NULL, 0, cases[k].most, &plan, &problem));
        assert_int_equal(cases[k].n_files, plan.n_files);
        for (size_t i = 0; i < plan.n_files; i++) {
            assert_int_equal(cases[k].first[i], plan.files[i].first_tensor);
            assert_int_equal(cases[k].first[i + 1] - cases[k].first[i], plan.files[i].n_tensors);
        }
        assert_string_equal(plan.n_files == 1   ? "model.safetensors"
                            : plan.n_files == 2 ? "model-00001-of-00002.safetensors"
                            : plan.n_files == 3 ? "model-00001-of-00003.safetensors"
                                                : "model-00001-of-00005.safetensors",
                            plan.files[0].name);
        assert_int_equal(0, mkdir(folder, 0700));
        write_planned(&plan, folder);
        assert_int_equal(FSDP_OK, fsdpi_tensor_files_open_in(folder, "model", &files, &problem));
        assert_int_equal(5, files.n_tensors);
        assert_int_equal(plan.n_files, files.n_files);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(tensors[i].begin, fsdpi_tensor_files_find(&files, tensors[i].name)->info->begin);
        }
        fsdpi_tensor_files_close(&files);
        fsdpi_file_plan_free(&plan);
    }
}

static void a_plan_of_nothing_is_one_file_and_of_names_twice_none(void **state)
{
    static const uint64_t dims[]    = {10};
    fsdpi_tensor_info     tensors[] = {{.name = "a", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims},
                                       {.name = "a", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims}};
    fsdpi_file_plan       plan;

    (void)state;
    assert_int_equal(FSDP_OK, fsdpi_file_plan_make("m", NULL, 0, NULL, 0, 1, &plan, &problem));
    assert_int_equal(1, plan.n_files);
    assert_string_equal("m.safetensors", plan.files[0].name);
    fsdpi_file_plan_free(&plan);
    assert_int_equal(FSDP_ERR_ARG, fsdpi_file_plan_make("m", tensors, 2, NULL, 0, 0, &plan, &problem));
    assert_int_equal(FSDP_ERR_ARG, fsdpi_file_plan_make("m", tensors, 2, NULL, 0, 1, &plan, &problem));
    test_contains(problem.text, "tensor 'a' comes twice");
    assert_null(plan.files);
}

static void writes_say_what_failed(void **state)
{
    const int fd   = open("read-only", O_RDONLY | O_CREAT | O_CLOEXEC, 0600),
              full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(FSDP_ERR_IO, fsdpi_file_write(fd, "read-only", 0, "x", 1, &problem));
    test_contains(problem.text, "read-only: cannot write: Bad file descriptor");
    if (full >= 0) {
        assert_int_equal(FSDP_ERR_IO, fsdpi_file_write(full, "/dev/full", 0, "x", 1, &problem));
        test_contains(problem.text, "/dev/full: cannot write: No space left on device");
        (void)close(full);
    }
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_one_file_are_read),
        cmocka_unit_test(tensors_of_several_files_are_read),
        cmocka_unit_test(what_is_no_file_of_tensors_is_refused),
        cmocka_unit_test(an_index_says_what_is_in_its_files),
        cmocka_unit_test(an_index_does_not_lead_out_of_its_folder),
        cmocka_unit_test(a_plan_divides_tensors_over_files),
        cmocka_unit_test(a_plan_of_nothing_is_one_file_and_of_names_twice_none),
        cmocka_unit_test(writes_say_what_failed),
    };

    return cmocka_run_group_tests(tests, test_folder_make, test_folder_remove);
}
