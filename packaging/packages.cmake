# Debian's packages and the source tarball, by CPack:
#
#   cmake --preset deb && cmake --build --preset deb && cpack --preset deb      build/deb/*.deb
#   cpack --preset source                                                       build/deb/fsdp-VERSION.tar.gz
#
# One set of packages for one MPI: those for MPICH (-DFSDP_MPI=mpich) have its name in theirs and take the place of the others.
set(flavour "")
set(mpi_package libopenmpi-dev)
set(mpi_launcher openmpi-bin)
set(other_flavour "-mpich")
if(FSDP_MPI_FLAVOUR STREQUAL "mpich")
    set(flavour "-mpich")
    set(mpi_package libmpich-dev)
    set(mpi_launcher mpich)
    set(other_flavour "")
endif()
set(library_package "libfsdp${flavour}${FSDP_SOVERSION}")
set(development_package "libfsdp${flavour}-dev")
set(tools_package "fsdp-tools${flavour}")
set(exactly "(= ${PROJECT_VERSION})")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fsdp)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The libfsdp authors <libfsdp@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL library development tools)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# fsdp_deb_package(COMPONENT NAME SECTION SUMMARY DEPENDENCIES): sets what CPack wants to know of one
macro(fsdp_deb_package component name section summary depends)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "${name}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION "${section}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}")
    install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" RENAME copyright
            COMPONENT ${component} EXCLUDE_FROM_ALL) # of packages only
endmacro()

fsdp_deb_package(library "${library_package}" libs
                 "The shared library: collectives on host and GPU memory, and training state divided over the ranks" "")
fsdp_deb_package(development "${development_package}" libdevel "Headers, Fortran module, pages and examples of libfsdp"
                 "${library_package} ${exactly}, ${mpi_package}")
fsdp_deb_package(tools "${tools_package}" science "Benchmark, topology and checkpoint programs of libfsdp"
                 "${library_package} ${exactly}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "${mpi_launcher}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS gfortran)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONFLICTS "libfsdp${other_flavour}${FSDP_SOVERSION}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_CONFLICTS "libfsdp${other_flavour}-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONFLICTS "fsdp-tools${other_flavour}")

set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME "fsdp-${PROJECT_VERSION}")
string(REGEX REPLACE "([][+.*^$(){}|?\\])" "\\\\\\1" here "${PROJECT_SOURCE_DIR}")
set(CPACK_SOURCE_IGNORE_FILES "^${here}/build/" "^${here}/\\\\.git(/|$)")

# A file for `module load`, in the installed tree but in no package: a system's own folders need none.
configure_file(packaging/modulefile/fsdp.in modulefile @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/modulefile" DESTINATION "${CMAKE_INSTALL_DATADIR}/modulefiles/fsdp"
        RENAME "${PROJECT_VERSION}" COMPONENT modulefile)

include(CPack)
