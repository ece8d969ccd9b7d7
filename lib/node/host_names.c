#include "lib/node/host_names.h"

#include <ctype.h>
#include <string.h>

enum {
    EACH_BYTES =
        24, /* for each of a few nodes, and as much as this for all: three bytes, which are seven digits, for 10^5 */
    FIRST_BYTES = 1 << 10,
    MOST_BYTES  = 300 << 10,
    MOST_DIGITS = 19 /* of a number in 64 bits */
};

size_t fsdpi_host_names_bytes(int size)
{
    const size_t bytes = FIRST_BYTES + (size_t)size * EACH_BYTES;

    return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

void fsdpi_host_names_move(fsdpi_host_names *names, void *table)
{
    names->table = table;
}

fsdpi_host_traits fsdpi_host_traits_of(const char *name)
{
    const size_t      length = strnlen(name, FSDPI_HOST_BYTES - 1);
    fsdpi_host_traits traits = {.lengths = UINT64_C(1) << length};

    for (size_t i = 0; i < FSDPI_HOST_BYTES; i++) {
        const unsigned char left  = i < length ? (unsigned char)name[i] : 0;
        const unsigned char right = i < length ? (unsigned char)name[length - 1 - i] : 0;

        traits.from_left[0][i]  = left;
        traits.from_left[1][i]  = (uint8_t)~left;
        traits.from_right[0][i] = right;
        traits.from_right[1][i] = (uint8_t)~right;
        traits.other_than_digits |= (uint64_t)(isdigit(left) == 0) << i;
    }
    return traits;
}

/* How many columns are the same in all names. */
static int common(const uint8_t columns[2][FSDPI_HOST_BYTES], int most)
{
    int n = 0;

    while (n < most && (columns[0][n] ^ columns[1][n]) == 0xff) {
        n++;
    }
    return n;
}

/* BYTES of any number of so many digits. */
static int bytes_of_digits(int digits)
{
    uint64_t largest = 0;
    int      bytes   = 0;

    for (int i = 0; i < digits; i++) {
        largest = largest * 10 + 9;
    }
    for (; largest != 0; largest >>= 8) {
        bytes++;
    }
    return bytes;
}

static bool are_digits(const fsdpi_host_traits *all, int first, int n)
{
    const uint64_t columns = ((UINT64_C(1) << n) - 1) << first;

    return n <= MOST_DIGITS && (all->other_than_digits & columns) == 0;
}

void fsdpi_host_names_begin(fsdpi_host_names *names, const char *name, const fsdpi_host_traits *all, int nodes,
                            int size)
{
    const int shortest = __builtin_ctzll(all->lengths), longest = 63 - __builtin_clzll(all->lengths);

    *names = (fsdpi_host_names){.head = common(all->from_left, shortest)};
    memcpy(names->first, name, strnlen(name, sizeof names->first - 1));
    names->tail       = common(all->from_right, shortest - names->head);
    const int between = longest - names->head - names->tail;
    names->digits     = shortest == longest && are_digits(all, names->head, between) ? between : 0;
    names->bytes      = names->digits > 0 ? bytes_of_digits(between) : between;
    names->known      = (size_t)names->bytes * (size_t)nodes <= fsdpi_host_names_bytes(size);
}

static unsigned char *entry_of(const fsdpi_host_names *names, int node)
{
    return names->table + (size_t)node * (size_t)names->bytes;
}

void fsdpi_host_names_put(fsdpi_host_names *names, int node, const char *name)
{
    const size_t   length  = strnlen(name, FSDPI_HOST_BYTES - 1);
    const char    *between = name + names->head;
    unsigned char *entry   = entry_of(names, node);
    uint64_t       number  = 0;

    if (!names->known) {
        return;
    }
    if (names->digits == 0) {
        memcpy(entry, between, length - (size_t)names->head - (size_t)names->tail);
        return;
    }
    for (int i = 0; i < names->digits; i++) {
        number = number * 10 + (uint64_t)(between[i] - '0');
    }
    for (int i = 0; i < names->bytes; i++) {
        entry[i] = (unsigned char)(number >> 8 * i);
    }
}

/* What is between, and its length. */
static size_t get_between(const fsdpi_host_names *names, int node, char *text)
{
    const unsigned char *entry  = entry_of(names, node);
    uint64_t             number = 0;

    if (names->digits == 0) {
        const size_t length = strnlen((const char *)entry, (size_t)names->bytes);
        memcpy(text, entry, length);
        return length;
    }
    for (int i = 0; i < names->bytes; i++) {
        number |= (uint64_t)entry[i] << 8 * i;
    }
    for (int i = names->digits - 1; i >= 0; i--, number /= 10) {
        text[i] = (char)('0' + number % 10);
    }
    return (size_t)names->digits;
}

void fsdpi_host_names_get(const fsdpi_host_names *names, int node, char name[FSDPI_HOST_BYTES])
{
    memset(name, 0, FSDPI_HOST_BYTES);
    if (!names->known) {
        return;
    }
    memcpy(name, names->first, (size_t)names->head);
    const size_t n = get_between(names, node, name + names->head);
    memcpy(name + (size_t)names->head + n, names->first + strlen(names->first) - names->tail, (size_t)names->tail);
}
