/* fsdp-ckpt verify: every rule of the formats, and every checksum. One damaged file does not hide the next. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/plural.h"
#include "tools/ckpt/ckpt.h"

typedef struct verification {
    const ckpt_options *options;
    fsdpi_json_writer   writer;
    ckpt_source         source;
    int                 result;
    size_t              good;
} verification;

/* Worse is larger: damage is known only of what could be read. */
static void report(verification *v, const char *path, const char *what, const fsdpi_problem *problem)
{
    const int result = problem == NULL ? CKPT_GOOD : problem->status == FSDP_ERR_FORMAT ? CKPT_DIFFERENT : CKPT_FAILED;

    v->result = result > v->result ? result : v->result;
    v->good += problem == NULL;
    if (v->options->json) {
        fsdpi_json_begin_object(&v->writer, NULL, true);
        fsdpi_json_put_string(&v->writer, "path", path);
        fsdpi_json_put_string(&v->writer, "checked", what);
        fsdpi_json_put_bool(&v->writer, "good", problem == NULL);
        if (problem != NULL) {
            fsdpi_json_put_string(&v->writer, "problem", problem->text);
        }
        fsdpi_json_end_object(&v->writer);
    } else if (problem == NULL) {
        (void)printf("%s: %s: good\n", path, what);
    } else {
        (void)printf("%s\n", problem->text);
    }
}

static void verify_rules(verification *v)
{
    ckpt_source *const source = &v->source;
    fsdpi_problem      problem;
    char               what[64];

    for (size_t i = 0; i < source->n_parts; i++) {
        if (ckpt_source_open_part(source, i, &problem) != FSDP_OK) {
            report(v, source->path, "format", &problem);
            continue;
        }
        for (size_t f = 0; f < source->parts[i].files.n_files; f++) {
            const fsdpi_tensor_file *const file = &source->parts[i].files.files[f];

            (void)snprintf(what, sizeof what, "format, %zu tensor%s", file->header.n_tensors,
                           fsdpi_s(file->header.n_tensors));
            report(v, file->path, what, NULL);
        }
    }
}

static void verify_sums(verification *v, const fsdpi_file_sums *sums)
{
    fsdpi_problem problem;
    char          path[FSDPI_FOLDER_PATH_BYTES], what[64];
    int           fd;
    uint64_t      bytes;
    fsdp_status   status;

    fsdpi_path_join(path, v->source.path, sums->name);
    status = fsdpi_file_open(path, &fd, &bytes, &problem);
    if (status == FSDP_OK) {
        status = fsdpi_file_verify(fd, path, sums, &problem);
        (void)close(fd);
    }
    (void)snprintf(what, sizeof what, "checksums of %zu chunk%s", sums->n_chunks, fsdpi_s(sums->n_chunks));
    report(v, path, what, status == FSDP_OK ? NULL : &problem);
}

/* Every file of tensors that is there is one that was written with the others. */
static void verify_coverage(verification *v)
{
    fsdpi_problem problem;

    for (size_t i = 0; i < v->source.n_parts; i++) {
        const fsdpi_tensor_files *const files = &v->source.parts[i].files;

        for (size_t f = 0; f < files->n_files; f++) {
            const char *const slash = strrchr(files->files[f].path, '/');
            const char *const name  = slash != NULL ? slash + 1 : files->files[f].path;

            if (fsdpi_checksums_find(&v->source.state.sums, name) == NULL) {
                (void)fsdpi_problem_set(&problem, FSDP_ERR_FORMAT, "%s: " FSDPI_STATE_FILE " has no checksums of it",
                                        files->files[f].path);
                report(v, files->files[f].path, "checksums", &problem);
            }
        }
    }
}

static void verify_all(verification *v)
{
    fsdpi_problem     problem;
    const fsdp_status status = ckpt_source_find(v->options->paths[0], &v->source, &problem);

    if (status != FSDP_OK) {
        report(v, v->options->paths[0], "state", &problem);
        if (v->source.n_parts == 0 || !v->source.is_folder || v->source.path[0] == 0) {
            return;
        }
    }
    verify_rules(v);
    if (v->source.has_state) {
        for (size_t i = 0; i < v->source.state.sums.n_files; i++) {
            verify_sums(v, &v->source.state.sums.files[i]);
        }
        verify_coverage(v);
    }
}

int ckpt_verify(const ckpt_options *options)
{
    static const char *const verdicts[] = {
        [CKPT_GOOD] = "good", [CKPT_DIFFERENT] = "damaged", [CKPT_FAILED] = "not readable"};

    verification v = {.options = options};

    fsdpi_json_writer_init(&v.writer, 2);
    fsdpi_json_begin_object(&v.writer, NULL, false);
    fsdpi_json_begin_array(&v.writer, "checks", false);
    verify_all(&v);
    fsdpi_json_end_array(&v.writer);
    fsdpi_json_put_bool(&v.writer, "has_checksums", v.source.has_state);
    fsdpi_json_put_string(&v.writer, "verdict", verdicts[v.result]);
    fsdpi_json_end_object(&v.writer);

    const bool has_state = v.source.has_state;
    ckpt_source_close(&v.source);
    if (options->json) {
        return ckpt_print_json(&v.writer, v.result);
    }
    free(v.writer.text);
    (void)printf("%s%s\n", verdicts[v.result],
                 has_state || v.result != CKPT_GOOD ? "" : "; there are no checksums to hold the values against");
    return v.result;
}
