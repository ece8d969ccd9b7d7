#include "gpt_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "mpi-examples/common/example_error.h"

#define BIBLE_COMMAND "bible -f -l0 gen1:1-rev22:21 2>/dev/null </dev/null"
#define BIBLE_NAME    "King James text (bible -f -l0 gen1:1-rev22:21)"
#define NOT_FOUND     127 /* what a shell returns for a command that it does not find */

#define VALIDATION_SHARE 20 /* one part in so many */

/* Appends all of `file` to the text. @return 0; or an errno */
static int read_stream(FILE *file, gpt_data *data)
{
    size_t room = 0, got = 1;

    while (got > 0) {
        if (data->bytes == room) {
            unsigned char *larger = realloc(data->text, room = room ? 2 * room : (size_t)1 << 20);

            if (!larger) {
                return ENOMEM;
            }
            data->text = larger;
        }
        errno = 0;
        got   = fread(data->text + data->bytes, 1, room - data->bytes, file);
        data->bytes += got;
    }
    return ferror(file) ? (errno ? errno : EIO) : 0;
}

static void read_bible(gpt_data *data, char *message)
{
    FILE *file   = popen(BIBLE_COMMAND, "r");
    int   error  = file ? read_stream(file, data) : errno;
    int   status = file ? pclose(file) : -1;

    if (error) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES,
                 "reading from the program 'bible' failed (%s); give a text with --data FILE", strerror(error));
    } else if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) == NOT_FOUND) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES,
                 "the program 'bible' is not installed; apt-get install bible-kjv, or give a text with --data FILE");
    } else if (WEXITSTATUS(status) != 0 || data->bytes == 0) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES,
                 "'bible -f -l0 gen1:1-rev22:21' ended with status %d after %zu bytes; apt-get install --reinstall "
                 "bible-kjv, or give a text with --data FILE",
                 WEXITSTATUS(status), data->bytes);
    }
}

/* The longest part of a file's name that a message has room for, its end. */
static const char *shown(const char *name)
{
    const size_t length = strlen(name), most = 120;

    return length > most ? name + length - most : name;
}

static void read_file(gpt_data *data, char *message)
{
    struct stat about;
    FILE       *file;
    int         error;

    if (stat(data->name, &about) != 0) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES, "--data is '%s': %s; give a file that rank 0 can read",
                 shown(data->name), strerror(errno));
        return;
    }
    if (!S_ISREG(about.st_mode)) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES, "--data is '%s', which is not a file; give one", shown(data->name));
        return;
    }
    file  = fopen(data->name, "rb");
    error = file ? read_stream(file, data) : errno;
    if (file) {
        fclose(file);
    }
    if (error) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES,
                 "--data is '%s', reading it failed: %s; give a file that rank 0 can read", shown(data->name),
                 strerror(error));
    } else if (data->bytes == 0) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES, "--data is '%s', which is empty; give a file that has text",
                 shown(data->name));
    }
}

/* Both parts must have a window. */
static void check_length(const gpt_data *data, char *message)
{
    const size_t needed = (data->context + 1) * VALIDATION_SHARE;

    if (!message[0] && data->bytes < needed) {
        snprintf(message, EXAMPLE_MESSAGE_BYTES,
                 "%s has %zu bytes, and --context %zu needs %zu; use a longer text or a shorter context",
                 shown(data->name), data->bytes, data->context, needed);
    }
}

static fsdp_status share(fsdp_context *ctx, gpt_data *data)
{
    char    message[EXAMPLE_MESSAGE_BYTES] = "";
    int64_t bytes                          = (int64_t)data->bytes;

    EXAMPLE_TRY(fsdp_broadcast(ctx, &bytes, 1, FSDP_I64, 0));
    data->bytes = (size_t)bytes;
    if (fsdp_rank(ctx) != 0) {
        data->text = malloc(data->bytes);
    }
    if (!data->text) {
        snprintf(message, sizeof message, "no memory for the %zu bytes of text; use a shorter one", data->bytes);
    }
    EXAMPLE_TRY(example_agree(ctx, message));
    return fsdp_broadcast(ctx, data->text, data->bytes, FSDP_U8, 0);
}

fsdp_status gpt_data_load(fsdp_context *ctx, const gpt_options *options, gpt_data *data)
{
    char        message[EXAMPLE_MESSAGE_BYTES] = "";
    fsdp_status status;

    *data = (gpt_data){
        .name = options->data ? options->data : BIBLE_NAME, .context = options->config.context, .seed = options->seed};
    if (fsdp_rank(ctx) == 0) {
        if (options->data) {
            read_file(data, message);
        } else {
            read_bible(data, message);
        }
        check_length(data, message);
    }
    status = example_agree(ctx, message);
    if (status == FSDP_OK) {
        status = share(ctx, data);
    }
    if (status != FSDP_OK) {
        gpt_data_release(data);
    }
    data->train = data->bytes - data->bytes / VALIDATION_SHARE;
    return status;
}

void gpt_data_release(gpt_data *data)
{
    free(data->text);
    data->text  = NULL;
    data->bytes = 0;
}

const unsigned char *gpt_data_train_window(const gpt_data *data, size_t sample)
{
    /* All places where the text may be cut leave the same number of windows. One sampler for all ranks, which take slices
     * of its order themselves: so the samples of a step do not depend on the number of ranks, to the end of each epoch. */
    const size_t       windows = (data->train - 1) / data->context > 1 ? (data->train - 1) / data->context - 1 : 1;
    const size_t       room    = data->train - 1 - windows * data->context;
    const fsdp_sampler sampler = {.dataset = windows, .rank = 0, .size = 1, .seed = data->seed, .shuffle = 1};
    const uint64_t     epoch   = sample / windows;
    const uint64_t     bits    = fsdp_random_bits(data->seed, fsdp_random_stream("03_gpt.cut"), epoch);
    const size_t       cut     = (size_t)(bits % (room + 1));

    return data->text + cut + fsdp_sampler_index(&sampler, epoch, (size_t)(sample % windows)) * data->context;
}

size_t gpt_data_val_windows(const gpt_data *data)
{
    return (data->bytes - data->train - 1) / data->context;
}

const unsigned char *gpt_data_val_window(const gpt_data *data, size_t window)
{
    return data->text + data->train + window * data->context;
}
