/**
 * @file
 * Well-formed UTF-8 (RFC 3629): shortest forms, no surrogates, nothing above U+10FFFF.
 */
#ifndef FSDPI_UTF8_H
#define FSDPI_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** BYTES of the character at `text`, which has `bytes`; 0 if they begin with none. */
static inline size_t fsdpi_utf8_length(const char *text, size_t bytes)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000}; /* that needs so many bytes */

    const unsigned char first  = (unsigned char)*text;
    const size_t        length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t            code   = first & (0xffu >> (length + 1));

    if (length < 2) {
        return length;
    }
    if (first > 0xf4 || bytes < length) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];

        if ((byte & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (byte & 0x3f);
    }
    return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

/** BYTES before the first that belongs to no character; strlen(text) where all are good. */
static inline size_t fsdpi_utf8_good(const char *text)
{
    const size_t bytes = strlen(text);
    size_t       good  = 0, length;

    while (good < bytes && (length = fsdpi_utf8_length(text + good, bytes - good)) > 0) {
        good += length;
    }
    return good;
}

/** Writes the character of a code and returns its BYTES. */
static inline size_t fsdpi_utf8_put(char *text, uint32_t code)
{
    const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const char   lead   = (char)(unsigned char)(length == 1 ? 0 : 0xf0u << (4 - length));

    for (size_t i = length; i-- > 1; code >>= 6) {
        text[i] = (char)(unsigned char)(0x80u | (code & 0x3f));
    }
    text[0] = (char)((unsigned char)lead | (unsigned char)code);
    return length;
}

#endif
