#include "tools/topo/svg/colours.h"

#include <math.h>
#include <stdio.h>

static const char *const first[] = {"#7fb3e6", "#f5b267", "#8fd19e", "#ec8f8f", "#b9a3e3", "#d6b08c",
                                    "#f2a6cf", "#f0dc6a", "#7ed3d1", "#c3d67a", "#a9b8c9", "#e6a57e"};
#define N_FIRST (sizeof first / sizeof first[0])

/* One of red, green and blue of a hue in turns, at a saturation and lightness that leave text legible. */
static unsigned component(double hue, double offset)
{
    const double x = fmod(hue + offset, 1) * 6, rise = fmin(fmin(x, 4 - x), 1);

    return (unsigned)lround(255 * (0.72 + 0.22 * fmax(-1, rise * 2 - 1)));
}

svg_colour svg_rank_colour(size_t rank)
{
    svg_colour colour;

    if (rank < N_FIRST) {
        (void)snprintf(colour.text, sizeof colour.text, "%s", first[rank]);
    } else {
        const double hue = fmod((double)rank * 0.61803398875, 1); /* the golden angle: no two are near for long */

        (void)snprintf(colour.text, sizeof colour.text, "#%02x%02x%02x", component(hue, 1.0 / 3) & 255U,
                       component(hue, 0) & 255U, component(hue, 2.0 / 3) & 255U);
    }
    return colour;
}

const char *svg_kind_colour(int kind)
{
    static const char *const colours[] = {"#555", "#1f6f8b", "#8b5a00", "#6b3fa0"};

    return colours[(size_t)kind % (sizeof colours / sizeof colours[0])];
}

const char *svg_link_colour(fsdp_link_type type)
{
    switch (type) {
    case FSDP_LINK_XGMI:
        return "#8e44ad";
    case FSDP_LINK_NVLINK:
        return "#2e8b57";
    case FSDP_LINK_PCIE:
    case FSDP_LINK_UNKNOWN:
        break;
    }
    return "#9a9a9a";
}
