/** @file A library that cannot be loaded without room for a variable of BYTES at a fixed offset in every thread. */
char *static_tls(void);

static _Thread_local char variable[BYTES] __attribute__((tls_model("initial-exec")));

char *static_tls(void)
{
    return variable;
}
