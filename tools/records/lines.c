/*
 * Records as lines of text, for launchers that pass the output of all hosts on in one stream, whatever else is printed there:
 *
 *     fsdp-record 1 HOST.PID.NUMBER LINE/LINES DATA
 *
 * DATA is a part of the record as a file has it, in hexadecimal digits, with runs of zero bytes as zLENGTH, of which most
 * of a record consists. Slurm keeps the lines of different nodes apart only if none is longer than 1024 bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/records/pack.h"
#include "tools/records/records.h"

enum { PART_BYTES = 384, KEY_BYTES = 120, ENTRIES_SENT = 128, MOST_LINES = 250000, MOST_ROWS = 1 << 20 };
static const char prefix[] = "fsdp-record 1 ";

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static void put_part(const unsigned char *data, size_t bytes, FILE *file)
{
    for (size_t i = 0; i < bytes;) {
        size_t zeros = 0;
        while (i + zeros < bytes && data[i + zeros] == 0) {
            zeros++;
        }
        if (zeros > 2) {
            (void)fprintf(file, "z%zx.", zeros);
            i += zeros;
        } else {
            (void)fprintf(file, "%02x", data[i++]);
        }
    }
}

static void put_record(const record_rank *rank, FILE *file)
{
    size_t         bytes;
    unsigned char *data = records_pack(rank, ENTRIES_SENT, &bytes);

    if (data == NULL) {
        return;
    }
    const size_t lines = (bytes + PART_BYTES - 1) / PART_BYTES;
    for (size_t i = 0; i < lines; i++) {
        const size_t begin = i * PART_BYTES;
        (void)fprintf(file, "%s%.60s.%d.%u %zu/%zu ", prefix, rank->head.host[0] != '\0' ? rank->head.host : "-",
                      (int)rank->section.pid, (unsigned)rank->section.number, i, lines);
        put_part(data + begin, bytes - begin < PART_BYTES ? bytes - begin : PART_BYTES, file);
        (void)fputc('\n', file);
        (void)fflush(file); /* in one piece, so that launchers can keep lines apart */
    }
    free(data);
}

void records_write_lines(const records *all, FILE *file)
{
    for (size_t i = 0; i < all->n; i++) {
        put_record(&all->ranks[i], file);
    }
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

typedef struct row {
    char           key[KEY_BYTES];
    unsigned char *data;
    bool          *has; /* each line */
    size_t         lines, come, bytes;
} row;

struct records_lines {
    row   *rows;
    size_t n;
};

records_lines *records_lines_begin(void)
{
    return calloc(1, sizeof(records_lines));
}

static row *find_row(records_lines *lines, const char *key, size_t n)
{
    for (size_t i = lines->n; i > 0; i--) {
        if (strcmp(lines->rows[i - 1].key, key) == 0) {
            return lines->rows[i - 1].lines == n ? &lines->rows[i - 1] : NULL;
        }
    }
    row *more = lines->n < MOST_ROWS ? realloc(lines->rows, (lines->n + 1) * sizeof *more) : NULL;
    if (more == NULL) {
        return NULL;
    }
    lines->rows = more;
    row *made   = &more[lines->n];
    *made       = (row){.data = malloc(n * PART_BYTES), .has = calloc(n, sizeof(bool)), .lines = n};
    if (made->data == NULL || made->has == NULL) {
        free(made->data);
        free(made->has);
        return NULL;
    }
    (void)snprintf(made->key, sizeof made->key, "%s", key);
    lines->n++;
    return made;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns BYTES; 0: it is none. */
static size_t get_part(const char *text, unsigned char *data)
{
    size_t n = 0;

    while (*text != '\0' && *text != '\n' && *text != '\r') {
        if (*text == 'z') {
            char        *end;
            const size_t zeros = strtoull(text + 1, &end, 16);
            if (*end != '.' || zeros > PART_BYTES - n) {
                return 0;
            }
            memset(data + n, 0, zeros);
            n += zeros;
            text = end + 1;
        } else {
            const int high = digit(text[0]), low = high >= 0 ? digit(text[1]) : -1;
            if (low < 0 || n == PART_BYTES) {
                return 0;
            }
            data[n++] = (unsigned char)(16 * high + low);
            text += 2;
        }
    }
    return n;
}

void records_lines_take(records_lines *lines, const char *line)
{
    char          key[KEY_BYTES];
    size_t        at, n;
    int           length = 0;
    unsigned char part[PART_BYTES];
    const char   *begin = strstr(line, prefix); /* behind whatever the launcher puts in front */

    if (begin == NULL || sscanf(begin + sizeof prefix - 1, "%119s %zu/%zu %n", key, &at, &n, &length) != 3 ||
        length == 0 || n == 0 || n > MOST_LINES || at >= n) {
        return;
    }
    const size_t bytes = get_part(begin + sizeof prefix - 1 + length, part);
    row         *mine  = bytes > 0 ? find_row(lines, key, n) : NULL;
    if (mine == NULL || mine->has[at] || (bytes != PART_BYTES && at + 1 != n)) {
        return;
    }
    memcpy(mine->data + at * PART_BYTES, part, bytes);
    mine->has[at] = true;
    mine->come++;
    mine->bytes += bytes;
}

long records_lines_end(records_lines *lines, records *all)
{
    long whole = 0;

    for (size_t i = 0; i < lines->n; i++) {
        row *mine = &lines->rows[i];
        if (mine->come == mine->lines) {
            whole += records_take(all, mine->data, mine->bytes, mine->key);
        } else {
            records_note(all, "%.100s: %zu of %zu lines have come", mine->key, mine->come, mine->lines);
        }
        free(mine->data);
        free(mine->has);
    }
    free(lines->rows);
    free(lines);
    return whole;
}

/* ---- commands -------------------------------------------------------------------------------------------------------- */

static FILE *start(records *all, const char *command)
{
    (void)fflush(NULL);
    /* The command is the caller's own, as he has typed it. */
    FILE *output = popen(command, "re"); /* NOLINT(cert-env33-c) */

    if (output == NULL) {
        records_note(all, "'%.200s' cannot be run: %s", command, strerror(errno));
    }
    return output;
}

static long finish(records *all, FILE *output, const char *command)
{
    records_lines *lines = records_lines_begin();
    char          *line  = NULL;
    size_t         room  = 0;

    while (lines != NULL && getline(&line, &room, output) >= 0) {
        records_lines_take(lines, line);
    }
    free(line);
    const int  status = pclose(output);
    const long whole  = lines != NULL ? records_lines_end(lines, all) : 0;
    if (status != 0) {
        records_note(all, "'%.200s' ended with status %d", command, status > 255 ? status >> 8 : status);
    } else if (whole == 0) {
        records_note(all, "'%.200s' has found no records", command);
    }
    return whole;
}

long records_read_commands(records *all, char *const *commands, size_t n)
{
    enum { AT_ONCE = 32 };
    FILE *outputs[AT_ONCE];
    long  whole = 0;

    for (size_t begin = 0; begin < n; begin += AT_ONCE) {
        const size_t end = n - begin < AT_ONCE ? n : begin + AT_ONCE;
        for (size_t i = begin; i < end; i++) {
            outputs[i - begin] = start(all, commands[i]);
        }
        for (size_t i = begin; i < end; i++) {
            whole += outputs[i - begin] != NULL ? finish(all, outputs[i - begin], commands[i]) : 0;
        }
    }
    return whole;
}
