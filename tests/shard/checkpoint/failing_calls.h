/**
 * @file
 * Calls of the C library that fail as a test wishes: failing_calls.c defines them in the test program itself, so that the
 * library under test comes to them. A file system is taken for ext4, whatever it is, so that all that is done on one is tried.
 */
#ifndef FSDP_TESTS_FAILING_CALLS_H
#define FSDP_TESTS_FAILING_CALLS_H

typedef enum failing_call {
    CALL_FLOCK,
    CALL_OPEN_DIRECT,  /* open() with O_DIRECT */
    CALL_WRITE_DIRECT, /* pwrite() to what has been opened so */
    CALL_FALLOCATE,
    CALL_SYNC_FOLDER, /* fsync() of a folder */
    CALL_RENAME,
    CALL_RENAME_DONE, /* rename() that is done, and says that it failed */
    CALL_UNLINK,      /* unlinkat() */
    N_FAILING_CALLS
} failing_call;

/** From now on `call` fails with `code`, of errno, behind the next `after` calls; it fails `times` times. `code` 0: it works. */
void failing_calls_set(failing_call call, int code, int after, int times);

/** All work again. */
void failing_calls_clear(void);

/** How many calls have failed since it was set. */
int failing_calls_count(failing_call call);

#endif
