# hwloc 2, which knows cores, caches, NUMA nodes and where PCI devices are. Sets FSDP_HWLOC_INCLUDE_DIR, and
# FSDP_TOPOLOGY_LIBRARIES: what the library then links. rocm-smi's library is loaded while a program runs.
find_path(FSDP_HWLOC_INCLUDE_DIR hwloc.h PATH_SUFFIXES hwloc)
find_library(FSDP_HWLOC_LIBRARY hwloc)
if(NOT FSDP_HWLOC_INCLUDE_DIR OR NOT FSDP_HWLOC_LIBRARY)
    message(FATAL_ERROR "hwloc was not found. cmake/dependencies.sh names and installs the packages, libhwloc-dev among "
                        "them")
endif()
set(FSDP_TOPOLOGY_LIBRARIES "${FSDP_HWLOC_LIBRARY}" ${CMAKE_DL_LIBS})
