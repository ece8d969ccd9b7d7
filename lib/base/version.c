#include "fsdp/version.h"

#define TEXT_OF_NUMBER_(number) #number
#define TEXT_OF_NUMBER(number)  TEXT_OF_NUMBER_(number)

const char *fsdp_version(void)
{
    return TEXT_OF_NUMBER(FSDP_VERSION_MAJOR) "." TEXT_OF_NUMBER(FSDP_VERSION_MINOR) "." TEXT_OF_NUMBER(
        FSDP_VERSION_PATCH);
}
