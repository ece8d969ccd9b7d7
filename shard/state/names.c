#include "shard/state/names.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/hash.h"

/* FNV leaves the first bits of similar short names alike; the trie goes by these. */
static uint64_t mixed(uint64_t hash)
{
    return fsdpi_hash_word(fsdpi_hash_word(FSDPI_HASH_START, hash), hash >> 32);
}

static uint64_t hash_of(const char *first, const char *second)
{
    uint64_t hash = FSDPI_HASH_START;

    if (first != NULL) {
        hash = fsdpi_hash_bytes(fsdpi_hash_bytes(hash, first, strlen(first)), ".", 1);
    }
    return mixed(fsdpi_hash_text(hash, second));
}

static int is_name(const char *text, const char *first, const char *second)
{
    const size_t length = first != NULL ? strlen(first) : 0;

    if (first == NULL) {
        return strcmp(text, second) == 0;
    }
    return strncmp(text, first, length) == 0 && text[length] == '.' && strcmp(text + length + 1, second) == 0;
}

/* After all bits are used up, names of one hash follow each other as first children. */
void fsdpi_names_add(fsdpi_names *names, fsdpi_name *entry, const char *text)
{
    fsdpi_name **place = &names->root;

    *entry = (fsdpi_name){.text = text, .hash = hash_of(NULL, text)};
    for (uint64_t bits = entry->hash; *place != NULL; bits <<= 1) {
        place = &(*place)->child[bits >> 63];
    }
    *place = entry;
}

static fsdpi_name *find(const fsdpi_names *names, const char *first, const char *second)
{
    const uint64_t hash  = hash_of(first, second);
    fsdpi_name    *entry = names->root;

    for (uint64_t bits = hash; entry != NULL; bits <<= 1) {
        if (entry->hash == hash && is_name(entry->text, first, second)) {
            return entry;
        }
        entry = entry->child[bits >> 63];
    }
    return NULL;
}

fsdpi_name *fsdpi_names_find(const fsdpi_names *names, const char *text)
{
    return find(names, NULL, text);
}

fsdpi_name *fsdpi_names_find_in(const fsdpi_names *names, const char *first, const char *second)
{
    return find(names, first, second);
}
