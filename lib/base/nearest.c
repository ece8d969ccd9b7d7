#include "lib/base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 255 };

/* One row of the table at a time. */
size_t fsdpi_name_distance(const char *a, const char *b)
{
    size_t       row[LONGEST + 1];
    const size_t n = strlen(b);

    if (n > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0]          = i + 1;
        for (size_t j = 0; j < n; j++) {
            const size_t change = diagonal + (a[i] != b[j]);
            const size_t gap    = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal            = row[j + 1];
            row[j + 1]          = change < gap ? change : gap;
        }
    }
    return row[n];
}
