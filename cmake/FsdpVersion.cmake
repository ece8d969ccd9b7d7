# FSDP_VERSION and FSDP_SOVERSION, read from include/fsdp/version.h: the one place where the version is written.
set(version_header "${CMAKE_CURRENT_SOURCE_DIR}/include/fsdp/version.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${version_header}")

set(FSDP_VERSION "")
foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${version_header}" line REGEX "^#define FSDP_VERSION_${part} +[0-9]+$")
    if(NOT line MATCHES "([0-9]+)$")
        message(FATAL_ERROR "${version_header} has no line '#define FSDP_VERSION_${part} <number>'")
    endif()
    list(APPEND FSDP_VERSION ${CMAKE_MATCH_1})
endforeach()
list(JOIN FSDP_VERSION "." FSDP_VERSION)

# Before 1.0 a minor version may change the interface: a program keeps the one that it was linked with.
if(FSDP_VERSION MATCHES "^0[.][0-9]+")
    set(FSDP_SOVERSION "${CMAKE_MATCH_0}")
else()
    string(REGEX MATCH "^[0-9]+" FSDP_SOVERSION "${FSDP_VERSION}")
endif()
