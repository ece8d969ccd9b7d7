#include "tools/topo/svg/draw.h"

void svg_text(FILE *file, double x, double y, const char *style, const char *text)
{
    (void)fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    for (; *text; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", file);
            break;
        case '>':
            (void)fputs("&gt;", file);
            break;
        case '&':
            (void)fputs("&amp;", file);
            break;
        default:
            (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
    }
    (void)fputs("</text>\n", file);
}

void svg_rect(FILE *file, svg_box box, const char *style)
{
    (void)fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", box.x, box.y, box.w, box.h,
                  style);
}
