#include "lib/topology/mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

int fsdp_mask_count(const fsdp_mask *mask)
{
    int count = 0;

    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        count += __builtin_popcountll(mask->word[w]);
    }
    return count;
}

int fsdp_mask_has(const fsdp_mask *mask, int number)
{
    return number >= 0 && number < FSDPI_MASK_BITS && (mask->word[number / 64] >> (number % 64) & 1) != 0;
}

int fsdpi_mask_first(const fsdp_mask *mask)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if (mask->word[w] != 0) {
            return 64 * w + __builtin_ctzll(mask->word[w]);
        }
    }
    return -1;
}

/* Appends "A" or "A-B"; false where there is no room for that and, unless it is the last, for "..." behind it. */
static bool append_range(char *text, size_t size, size_t *used, int first, int last, bool is_last)
{
    char         range[24];
    const char  *comma  = *used > 0 ? "," : "";
    const int    length = last > first ? snprintf(range, sizeof range, "%s%d-%d", comma, first, last)
                                       : snprintf(range, sizeof range, "%s%d", comma, first);
    const size_t behind = is_last ? 0 : sizeof ",..." - 1;

    if (*used + (size_t)length + behind + 1 > size) {
        (void)snprintf(text + *used, size - *used, "%s...", comma);
        return false;
    }
    memcpy(text + *used, range, (size_t)length + 1);
    *used += (size_t)length;
    return true;
}

void fsdp_mask_text(const fsdp_mask *mask, char *text, size_t size)
{
    const int count = fsdp_mask_count(mask);
    size_t    used  = 0;

    (void)snprintf(text, size, "none");
    for (int first = 0, seen = 0; seen < count; first++) {
        int last = first;

        if (!fsdp_mask_has(mask, first)) {
            continue;
        }
        while (fsdp_mask_has(mask, last + 1)) {
            last++;
        }
        seen += last - first + 1;
        if (!append_range(text, size, &used, first, last, seen == count)) {
            return;
        }
        first = last;
    }
}

/* A number below FSDPI_MASK_BITS at the beginning of a text. */
static bool read_number(const char **text, int *number)
{
    char *end;

    if (**text < '0' || **text > '9') {
        return false;
    }
    const unsigned long value = strtoul(*text, &end, 10);
    *text                     = end;
    *number                   = value < FSDPI_MASK_BITS ? (int)value : 0;
    return value < FSDPI_MASK_BITS;
}

/* Adds the numbers of a list, "0-7,64", to a mask. */
static bool read_list(const char *text, fsdp_mask *mask)
{
    for (;;) {
        int first, last;

        if (!read_number(&text, &first)) {
            return false;
        }
        last = first;
        if (*text == '-') {
            text++;
            if (!read_number(&text, &last) || last < first) {
                return false;
            }
        }
        for (int number = first; number <= last; number++) {
            fsdpi_mask_add(mask, number);
        }
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}

fsdp_status fsdp_mask_read(const char *text, fsdp_mask *mask)
{
    if (text == NULL || mask == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_mask_read: the %s is NULL", text == NULL ? "text" : "mask");
    }
    *mask = (fsdp_mask){{0}};
    if (!read_list(text, mask)) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_mask_read: '%.100s' is no list of numbers up to %d, as 0-7,64-71",
                          text, FSDPI_MASK_BITS - 1);
    }
    return FSDP_OK;
}

bool fsdpi_mask_from_file(const char *root, const char *path, fsdp_mask *mask)
{
    char  name[512], line[4096] = "";
    FILE *file;

    (void)snprintf(name, sizeof name, "%s%s", root, path);
    file            = fopen(name, "re");
    const bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    *mask                     = (fsdp_mask){{0}};
    return read && line[0] != '\0' && read_list(line, mask);
}
