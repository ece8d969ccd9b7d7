/**
 * @file
 * A verdict in JSON.
 */
#ifndef WHY_JSON_H
#define WHY_JSON_H

#include <stdio.h>

#include "tools/records/verdict.h"

void why_print_json(const verdict *found, const verdict_job *job, const records *all, FILE *file);

#endif
