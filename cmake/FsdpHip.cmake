# FSDP_HIP decides whether the library is built with the HIP runtime: AUTO (where it is found), ON or OFF.
# Sets FSDP_WITH_HIP, FSDP_HIP_INCLUDE_DIR, and FSDP_DEVICE_LIBRARIES: what the library then links.
set(FSDP_HIP AUTO CACHE STRING "Build with the HIP runtime: AUTO, ON or OFF")
set_property(CACHE FSDP_HIP PROPERTY STRINGS AUTO ON OFF)

set(FSDP_WITH_HIP OFF)
set(FSDP_DEVICE_LIBRARIES "")
if(FSDP_HIP STREQUAL "AUTO" OR FSDP_HIP)
    find_path(FSDP_HIP_INCLUDE_DIR hip/hip_runtime_api.h HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES include)
    find_library(FSDP_HIP_LIBRARY amdhip64 HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES lib)
    if(FSDP_HIP_INCLUDE_DIR AND FSDP_HIP_LIBRARY)
        set(FSDP_WITH_HIP ON)
        set(FSDP_DEVICE_LIBRARIES "${FSDP_HIP_LIBRARY}")
    elseif(NOT FSDP_HIP STREQUAL "AUTO")
        message(FATAL_ERROR "FSDP_HIP is ${FSDP_HIP}, but the HIP runtime is not there: install libamdhip64-dev, or set "
                            "ROCM_PATH to where ROCm is")
    endif()
endif()
message(STATUS "HIP runtime: ${FSDP_WITH_HIP}")
