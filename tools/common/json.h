/**
 * @file
 * JSON as the programs write it (RFC 8259).
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdio.h>

/** A string with its quotes; UTF-8 goes through as it is. */
void cli_json_text(FILE *file, const char *text);

#endif
