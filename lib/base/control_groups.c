#include "lib/base/control_groups.h"

#include <stdio.h>
#include <string.h>

enum { LINE_ROOM = 4096 };

typedef struct walk {
    const char      *root, *controller;
    fsdpi_group_look look;
    void            *context;
} walk;

/* A container may see only groups above the one that is named: whoever looks at a folder may find nothing there. */
static void go_up(const walk *w, const char *mount, const char *group, bool is_version_2)
{
    char folder[FSDPI_GROUP_ROOM];

    (void)snprintf(folder, sizeof folder, "%s%s%s", w->root, mount, group);
    for (char *end = folder + strlen(folder); end != NULL;
         end       = strrchr(folder + strlen(w->root) + strlen(mount), '/')) {
        *end = '\0';
        w->look(folder, is_version_2, w->context);
    }
}

/* Whether a list as "cpu,memory" names a controller. */
static bool names(const char *list, const char *controller)
{
    for (const char *name = list; name != NULL; name = strchr(name, ',')) {
        name += *name == ',';
        if (strcspn(name, ",") == strlen(controller) && strncmp(name, controller, strlen(controller)) == 0) {
            return true;
        }
    }
    return false;
}

/* A line is "5:cpu,memory:/group", or "0::/group" of version 2. */
static void read_line(const walk *w, char *line)
{
    char  mount[64];
    char *list  = strchr(line, ':');
    char *group = list != NULL ? strchr(list + 1, ':') : NULL;

    if (group == NULL) {
        return;
    }
    *group++                    = '\0';
    list                        = list + 1;
    group[strcspn(group, "\n")] = '\0';
    if (*list == '\0') {
        go_up(w, "/sys/fs/cgroup", group, true);
    } else if (names(list, w->controller)) {
        (void)snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", w->controller);
        go_up(w, mount, group, false);
    }
}

void fsdpi_control_groups_walk(const char *root, const char *controller, fsdpi_group_look look, void *context)
{
    const walk w = {root, controller, look, context};
    char       path[FSDPI_GROUP_ROOM], line[LINE_ROOM];

    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        read_line(&w, line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}
