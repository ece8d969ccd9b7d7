/**
 * @file
 * Files for the tests of the file formats, in a folder that is removed at the end.
 */
#ifndef FSDP_TESTS_TEST_FILES_H
#define FSDP_TESTS_TEST_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/safetensors.h"

/** cmocka's setup and teardown of a group: a folder of its own, which is the working folder meanwhile. */
int test_folder_make(void **state);
int test_folder_remove(void **state);

/** Writes a file of the working folder, anew. */
void test_file_write(const char *name, const void *bytes, size_t n_bytes);

/** A safetensors file of a header and `data_bytes` that count up from 0. The caller frees it. */
unsigned char *test_safetensors_make(const char *header, size_t data_bytes, size_t *file_bytes);

/** The same as a file of the working folder. */
void test_safetensors_write(const char *name, const char *header, size_t data_bytes);

/** Fails the test where `text` does not contain `part`. */
void test_contains(const char *text, const char *part);

#endif
