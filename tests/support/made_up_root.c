#include "tests/support/made_up_root.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 512 };

static char root[64];

const char *made_up_root(void)
{
    return root;
}

int make_up_root(void **state)
{
    (void)state;
    (void)strcpy(root, "/tmp/fsdp-machine-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static void remove_tree(const char *path)
{
    DIR *folder = opendir(path);

    for (const struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char inner[PATH_ROOM];

        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            assert_true(snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < PATH_ROOM);
            remove_tree(inner);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    assert_int_equal(0, remove(path));
}

int remove_made_up_root(void **state)
{
    (void)state;
    remove_tree(root);
    return 0;
}

void put_file(const char *path, const char *text)
{
    char whole[PATH_ROOM];

    assert_true(snprintf(whole, sizeof whole, "%s%s", root, path) < PATH_ROOM);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(0, fclose(file));
}
