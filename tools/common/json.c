#include "tools/common/json.h"

void cli_json_text(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (; *text; text++) {
        const unsigned char letter = (unsigned char)*text;

        if (letter == '"' || letter == '\\') {
            (void)fprintf(file, "\\%c", letter);
        } else if (letter < ' ') {
            (void)fprintf(file, "\\u%04x", letter);
        } else {
            (void)fputc(letter, file);
        }
    }
    (void)fputc('"', file);
}
