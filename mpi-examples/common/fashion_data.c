#include "fashion_data.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "example_error.h"

/* An IDX file begins with 0, 0, the type of its elements (8: unsigned bytes) and the number of dimensions; then comes the
 * extent of each dimension, then the elements. All numbers are of 32 bits, the highest byte first. */
#define MAGIC_LABELS 0x00000801U
#define MAGIC_IMAGES 0x00000803U
#define MOST_IMAGES  10000000U

#define PATH_BYTES 4096

const char *fashion_class_name(size_t label)
{
    static const char *const names[FASHION_CLASSES] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                                       "sandal",  "shirt",   "sneaker",  "bag",   "boot"};

    return names[label];
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

typedef struct idx_file {
    const char *name;
    gzFile      stream;
    char       *message; /* EXAMPLE_MESSAGE_BYTES: empty until something is wrong */
} idx_file;

/* Keeps what is wrong with a file. @return 0, as all functions below where something is */
static int complain(const idx_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int complain(const idx_file *file, const char *format, ...)
{
    int     used = snprintf(file->message, EXAMPLE_MESSAGE_BYTES, "%s ", file->name);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(file->message + used, EXAMPLE_MESSAGE_BYTES - (size_t)used, format, arguments);
    va_end(arguments);
    return 0;
}

static int complain_of_zlib(const idx_file *file)
{
    int code;

    (void)gzerror(file->stream, &code);
    return complain(file, "cannot be unpacked (%s); give an intact copy", zError(code));
}

/* Reads exactly `bytes`, which may be more than zlib reads at once. */
static int read_bytes(const idx_file *file, unsigned char *to, size_t bytes, const char *what)
{
    size_t done = 0;

    while (done < bytes) {
        const unsigned most = bytes - done < (1U << 30) ? (unsigned)(bytes - done) : 1U << 30;
        const int      got  = gzread(file->stream, to + done, most);

        if (got < 0) {
            return complain_of_zlib(file);
        }
        if (got == 0) {
            return complain(file, "ends after %zu of the %zu bytes of its %s; give an intact copy", done, bytes, what);
        }
        done += (size_t)got;
    }
    return 1;
}

static int read_number(const idx_file *file, uint32_t *number)
{
    unsigned char b[4];

    if (!read_bytes(file, b, sizeof b, "header")) {
        return 0;
    }
    *number = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
    return 1;
}

static int read_magic(const idx_file *file, uint32_t expected)
{
    uint32_t magic;

    if (!read_number(file, &magic)) {
        return 0;
    }
    return magic == expected
               ? 1
               : complain(file, "begins with 0x%08x instead of 0x%08x, so it is no such IDX file; give one",
                          (unsigned)magic, (unsigned)expected);
}

static int read_count(const idx_file *file, size_t *count)
{
    uint32_t number;

    if (!read_number(file, &number)) {
        return 0;
    }
    *count = number;
    return number >= 1 && number <= MOST_IMAGES
               ? 1
               : complain(file, "says that it has %u entries; 1 to %u are possible", (unsigned)number, MOST_IMAGES);
}

static int read_extents(const idx_file *file)
{
    uint32_t rows, columns;

    if (!read_number(file, &rows) || !read_number(file, &columns)) {
        return 0;
    }
    return rows == FASHION_SIZE && columns == FASHION_SIZE
               ? 1
               : complain(file, "has images of %u x %u; they must be %d x %d", (unsigned)rows, (unsigned)columns,
                          FASHION_SIZE, FASHION_SIZE);
}

/* The rest of the file: `bytes`, and not one more. The end is where zlib compares the checksum. */
static int read_rest(const idx_file *file, size_t bytes, unsigned char **content)
{
    int code;

    *content = malloc(bytes + 1); /* for one that should not be there */
    if (!*content) {
        return complain(file, "needs %zu bytes of memory, which there are not; use fewer ranks per node", bytes);
    }
    if (!read_bytes(file, *content, bytes, "content")) {
        return 0;
    }
    switch (gzread(file->stream, *content + bytes, 1)) {
    case 0:
        (void)gzerror(file->stream, &code);
        return code == Z_OK || code == Z_STREAM_END ? 1 : complain(file, "ends early; give an intact copy");
    case 1:
        return complain(file, "goes on after the %zu bytes that it announces; give an intact copy", bytes);
    default:
        return complain_of_zlib(file);
    }
}

static int read_images(const idx_file *file, fashion_set *set)
{
    return read_magic(file, MAGIC_IMAGES) && read_count(file, &set->count) && read_extents(file) &&
           read_rest(file, set->count * FASHION_PIXELS, &set->images);
}

static int read_labels(const idx_file *file, fashion_set *set)
{
    size_t count, i;

    if (!read_magic(file, MAGIC_LABELS) || !read_count(file, &count)) {
        return 0;
    }
    if (count != set->count) {
        return complain(file, "has %zu labels for %zu images; give files that belong together", count, set->count);
    }
    if (!read_rest(file, count, &set->labels)) {
        return 0;
    }
    for (i = 0; i < count; i++) {
        if (set->labels[i] >= FASHION_CLASSES) {
            return complain(file, "has label %d at entry %zu; labels are 0 to %d", set->labels[i], i,
                            FASHION_CLASSES - 1);
        }
    }
    return 1;
}

/* Opens folder/name and hands it to `read`. */
static int read_file(const char *folder, const char *name, int (*read)(const idx_file *file, fashion_set *set),
                     fashion_set *set, char *message)
{
    idx_file file = {.name = name};
    char     path[PATH_BYTES];
    int      ok;

    file.message = message;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return complain(&file, "is in a folder whose name is too long");
    }
    file.stream = gzopen(path, "rb");
    if (!file.stream) {
        return complain(&file, "cannot be opened in --data: %s; give a folder with the four files of Fashion-MNIST",
                        errno ? strerror(errno) : "out of memory");
    }
    ok = read(&file, set);
    (void)gzclose_r(file.stream);
    return ok;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* The end of a folder's name, as much of it as a message has room for. */
static const char *shown(const char *name)
{
    const size_t length = strlen(name), most = 80;

    return length > most ? name + length - most : name;
}

static void read_all(const char *folder, fashion_data *data, char *message)
{
    struct stat about;

    if (stat(folder, &about) != 0) {
        (void)snprintf(
            message, EXAMPLE_MESSAGE_BYTES,
            "--data is '%s': %s; apt-get install dataset-fashion-mnist, or give a folder with its four files",
            shown(folder), strerror(errno));
        return;
    }
    (void)(read_file(folder, "train-images-idx3-ubyte.gz", read_images, &data->train, message) &&
           read_file(folder, "train-labels-idx1-ubyte.gz", read_labels, &data->train, message) &&
           read_file(folder, "t10k-images-idx3-ubyte.gz", read_images, &data->test, message) &&
           read_file(folder, "t10k-labels-idx1-ubyte.gz", read_labels, &data->test, message));
}

static void keep_first(fashion_set *set, size_t most)
{
    set->count = most && most < set->count ? most : set->count;
}

static fsdp_status share(fsdp_context *ctx, fashion_set *set)
{
    const int root  = fsdp_rank(ctx) == 0;
    int64_t   count = (int64_t)set->count;

    EXAMPLE_TRY(fsdp_broadcast(ctx, &count, 1, FSDP_I64, 0));
    set->count = (size_t)count;
    if (!root) {
        set->images = malloc(set->count * FASHION_PIXELS);
        set->labels = malloc(set->count);
    }
    EXAMPLE_TRY(example_agree(ctx, set->images && set->labels ? "" : "no memory for the images; use --train-images"));
    EXAMPLE_TRY(fsdp_broadcast(ctx, set->images, set->count * FASHION_PIXELS, FSDP_U8, 0));
    return fsdp_broadcast(ctx, set->labels, set->count, FSDP_U8, 0);
}

/* In whole numbers, so that it is the same on all ranks. */
void fashion_data_measure(fashion_data *data)
{
    const size_t pixels = data->train.count * FASHION_PIXELS;
    uint64_t     sum = 0, squares = 0;
    size_t       i;

    for (i = 0; i < pixels; i++) {
        sum += data->train.images[i];
        squares += (uint64_t)data->train.images[i] * data->train.images[i];
    }
    data->mean      = (double)sum / (double)pixels;
    data->deviation = sqrt((double)squares / (double)pixels - data->mean * data->mean);
    data->deviation = data->deviation > 1 ? data->deviation : 1;
}

fsdp_status fashion_data_load(fsdp_context *ctx, const fashion_data_options *options, fashion_data *data)
{
    char        message[EXAMPLE_MESSAGE_BYTES] = "";
    fsdp_status status;

    memset(data, 0, sizeof *data);
    if (fsdp_rank(ctx) == 0) {
        read_all(options->folder, data, message);
        keep_first(&data->train, options->train_images);
        keep_first(&data->test, options->test_images);
    }
    status = example_agree(ctx, message);
    status = status == FSDP_OK ? share(ctx, &data->train) : status;
    status = status == FSDP_OK ? share(ctx, &data->test) : status;
    if (status != FSDP_OK) {
        fashion_data_release(data);
        return status;
    }
    fashion_data_measure(data);
    return FSDP_OK;
}

void fashion_data_release(fashion_data *data)
{
    free(data->train.images);
    free(data->train.labels);
    free(data->test.images);
    free(data->test.labels);
    memset(data, 0, sizeof *data);
}
