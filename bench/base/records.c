#include "bench/base/records.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tools/common/json.h"

fsdp_status bench_file_possible(const bench_world *world, const char *option, const char *path)
{
    char line[400] = "";

    if (path && world->rank == 0) {
        FILE *file = fopen(path, "ae"); /* what is in it stays until there is something better */

        if (!file || fclose(file) != 0) {
            (void)snprintf(line, sizeof line, "--%s is '%.200s', which cannot be written: %s; name a file that can be",
                           option, path, strerror(errno));
        }
    }
    return bench_agree(world, !line[0], line);
}

static FILE *open_file(const char *path, const bench_world *world, int *ok)
{
    FILE *file = path && world->rank == 0 ? fopen(path, "we") : NULL;

    *ok = *ok && (!path || world->rank != 0 || file);
    return file;
}

fsdp_status bench_records_open(bench_records *records, const bench_world *world, const bench_options *options)
{
    int ok = 1;

    *records      = (bench_records){0};
    records->json = open_file(options->json, world, &ok);
    records->csv  = open_file(options->csv, world, &ok);
    return bench_agree(world, ok, "the file of --json or --csv cannot be written any more; name another");
}

static void write_json(FILE *file, const bench_field *fields, size_t n)
{
    (void)fputc('{', file);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(file, "%s\"%s\": ", i ? ", " : "", fields[i].name);
        if (fields[i].text) {
            cli_json_text(file, fields[i].text);
        } else if (isfinite(fields[i].number) && fields[i].number >= 0) {
            (void)fprintf(file, "%.15g", fields[i].number);
        } else {
            (void)fputs("null", file);
        }
    }
    (void)fputc('}', file);
}

static void write_csv_names(FILE *file, const bench_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(file, "%s%s", i ? "," : "", fields[i].name);
    }
    (void)fputc('\n', file);
}

/* The texts of a row are names without commas. */
static void write_csv(FILE *file, const bench_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fputs(i ? "," : "", file);
        if (fields[i].text) {
            (void)fputs(fields[i].text, file);
        } else if (isfinite(fields[i].number) && fields[i].number >= 0) {
            (void)fprintf(file, "%.15g", fields[i].number);
        }
    }
    (void)fputc('\n', file);
}

void bench_records_header(bench_records *records, const bench_field *fields, size_t n)
{
    if (records->json) {
        (void)fputs("{\"header\": ", records->json);
        write_json(records->json, fields, n);
        (void)fputs(",\n\"results\": [", records->json);
        records->begun = 1;
    }
}

void bench_records_row(bench_records *records, const bench_field *fields, size_t n)
{
    if (records->json) {
        (void)fputs(records->rows ? ",\n" : "\n", records->json);
        write_json(records->json, fields, n);
    }
    if (records->csv && records->rows == 0) {
        write_csv_names(records->csv, fields, n);
    }
    if (records->csv) {
        write_csv(records->csv, fields, n);
    }
    records->rows++;
}

void bench_records_summary(bench_records *records, const bench_field *fields, size_t n)
{
    if (records->json && records->begun) {
        (void)fputs("\n],\n\"summary\": ", records->json);
        write_json(records->json, fields, n);
        (void)fputs("}\n", records->json);
        records->begun = 0;
    }
}

static int close_file(FILE *file)
{
    const int failed = file && ferror(file);

    return !(file && fclose(file) != 0) && !failed;
}

fsdp_status bench_records_close(bench_records *records, const bench_world *world)
{
    int ok;

    if (records->json && records->begun) {
        (void)fputs("\n]}\n", records->json);
    }
    ok = close_file(records->json);
    ok = close_file(records->csv) && ok;
    return bench_agree(world, ok, "the results could not be written to the end; is the disk of --json or --csv full?");
}
