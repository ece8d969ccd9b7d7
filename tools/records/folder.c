/*
 * Records in files of a folder: read, and written in the name of others.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/records/pack.h"
#include "tools/records/records.h"

enum { MOST_BYTES = 256 << 20 }; /* of a file: more than the largest ring takes */

static bool ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);

    return length > tail && strcmp(name + length - tail, end) == 0;
}

static void *read_whole(const char *path, size_t *bytes)
{
    struct stat    about;
    unsigned char *data = NULL;
    FILE          *file = fopen(path, "rbe");

    *bytes = 0;
    if (file != NULL && fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= MOST_BYTES) {
        data   = malloc((size_t)about.st_size + 1);
        *bytes = data != NULL ? fread(data, 1, (size_t)about.st_size, file) : 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return data;
}

static void take_file(records *all, const char *folder, const char *name)
{
    char   path[PATH_MAX + NAME_MAX];
    size_t bytes;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    void *data = read_whole(path, &bytes);
    if (data == NULL) {
        records_note(all, "%.200s cannot be read", name);
        return;
    }
    (void)records_take(all, data, bytes, name);
    free(data);
}

long records_read_folder(records *all, const char *folder)
{
    struct dirent **names;
    long            files = 0;
    const int       n     = scandir(folder, &names, NULL, alphasort);

    if (n < 0) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (ends_in(names[i]->d_name, FSDPI_RECORDED_SUFFIX)) {
            take_file(all, folder, names[i]->d_name);
            files++;
        } else if (ends_in(names[i]->d_name, FSDPI_RECORDED_PART)) {
            records_note(all, "%.200s is only a part: its writer ended before the file did", names[i]->d_name);
            files++;
        }
        free(names[i]);
    }
    free(names);
    return files;
}

static int save(const record_rank *rank, const char *folder)
{
    char        path[PATH_MAX];
    size_t      bytes;
    record_rank file = *rank;

    file.head.cause       = rank->is_live ? FSDPI_CAUSE_ASKED : file.head.cause;
    file.head.written_by  = rank->is_live ? rank->section.shown_rank : file.head.written_by;
    unsigned char *data   = records_pack(&file, SIZE_MAX, &bytes);
    const unsigned number = (unsigned)rank->section.number;

    if (data == NULL) {
        return ENOMEM;
    }
    if (number == 1) {
        (void)snprintf(path, sizeof path, "%s/%s.%d%s", folder, rank->head.host, rank->section.file_rank,
                       FSDPI_RECORDED_SUFFIX);
    } else {
        (void)snprintf(path, sizeof path, "%s/%s.%d.%u%s", folder, rank->head.host, rank->section.file_rank, number,
                       FSDPI_RECORDED_SUFFIX);
    }
    FILE      *stream  = strchr(rank->head.host, '/') == NULL ? fopen(path, "wbe") : NULL;
    const bool written = stream != NULL && fwrite(data, 1, bytes, stream) == bytes;
    int        why     = written ? 0 : errno != 0 ? errno : EIO;
    if (stream != NULL && fclose(stream) != 0 && why == 0) {
        why = errno;
    }
    free(data);
    return why;
}

int records_save(const records *all, const char *folder)
{
    int why = all->n > 0 && mkdir(folder, 0777) != 0 && errno != EEXIST ? errno : 0;

    errno = 0;
    for (size_t i = 0; i < all->n && why == 0; i++) {
        why = save(&all->ranks[i], folder);
    }
    return why;
}
