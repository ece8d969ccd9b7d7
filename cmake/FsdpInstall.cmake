# What is installed: headers, library, CMake package, pkg-config file, pages, sources of the examples. The prefix may be moved afterwards.
# In three parts, which are packages of their own: what programs need where they run (library), what compiles them (development),
# and the programs that come with it (tools). See packaging/packages.cmake.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fsdp")

# A program that finds the library beside it, wherever that is.
function(fsdp_install_program target)
    file(RELATIVE_PATH to_library "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
    install(TARGETS ${target} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
endfunction()

install(TARGETS fsdp EXPORT fsdpTargets
        LIBRARY COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development)
install(DIRECTORY include/fsdp "${CMAKE_CURRENT_BINARY_DIR}/include/fsdp"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development FILES_MATCHING PATTERN "*.h")
install(EXPORT fsdpTargets NAMESPACE fsdp:: DESTINATION "${package_dir}" COMPONENT development)

configure_package_config_file(cmake/fsdpConfig.cmake.in fsdpConfig.cmake INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the interface.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatibility SameMinorVersion)
else()
    set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(fsdpConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/fsdpConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/fsdpConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT development)

# The MPI's own flags stand in fsdp.pc, so that it works with a plain compiler and with any MPI; not every MPI ships a
# pkg-config file, and MPICH's asks for the development packages of hwloc and UCX.
list(TRANSFORM FSDP_CXX_DEFINITIONS PREPEND "-D" OUTPUT_VARIABLE pc_definitions)
list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND "-I" OUTPUT_VARIABLE pc_includes)
set(pc_mpi_cflags ${MPI_C_COMPILE_OPTIONS} ${pc_definitions} ${pc_includes})
list(JOIN pc_mpi_cflags " " pc_mpi_cflags)
# Gives in `result` what links the libraries of MPI's `language`.
function(fsdp_pc_mpi_libs result language)
    set(libs ${MPI_${language}_LINK_FLAGS})
    foreach(library IN LISTS MPI_${language}_LIBRARIES)
        cmake_path(GET library PARENT_PATH folder)
        cmake_path(GET library STEM name)
        string(REGEX REPLACE "^lib" "" name "${name}")
        list(APPEND libs "-L${folder}" "-l${name}")
    endforeach()
    list(JOIN libs " " libs)
    set(${result} "${libs}" PARENT_SCOPE)
endfunction()
fsdp_pc_mpi_libs(pc_mpi_libs C)
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pc_libdir)
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE pc_includedir)
if(BUILD_SHARED_LIBS)
    set(pc_libs "")
    set(pc_libs_private "-pthread -lm")
else()
    list(JOIN FSDP_DEVICE_LIBRARIES " " pc_device_libs)
    set(pc_libs "-pthread -lm -ldl ${pc_device_libs} ${FSDP_HWLOC_LIBRARY}")
    set(pc_libs_private "")
endif()
configure_file(cmake/fsdp.pc.in fsdp.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/fsdp.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# The module of Fortran has a set of targets of its own, since C's programs have no Fortran.
if(FSDP_WITH_FORTRAN)
    install(TARGETS fsdp_fortran EXPORT fsdpFortranTargets ARCHIVE COMPONENT development)
    install(EXPORT fsdpFortranTargets NAMESPACE fsdp:: DESTINATION "${package_dir}" COMPONENT development)
    install(DIRECTORY "${PROJECT_BINARY_DIR}/fortran/modules/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/fsdp/fortran"
            COMPONENT development FILES_MATCHING PATTERN "*.mod")
    list(TRANSFORM MPI_Fortran_INCLUDE_DIRS PREPEND "-I" OUTPUT_VARIABLE pc_fortran_includes)
    set(pc_fortran_cflags ${MPI_Fortran_COMPILE_OPTIONS} ${pc_fortran_includes})
    list(JOIN pc_fortran_cflags " " pc_fortran_cflags)
    fsdp_pc_mpi_libs(pc_fortran_libs Fortran)
    configure_file(cmake/fsdp-fortran.pc.in fsdp-fortran.pc @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/fsdp-fortran.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
            COMPONENT development)
endif()

install(FILES README.md LICENSE CHANGELOG.md CONTRIBUTING.md CITATION.cff DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        COMPONENT development)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
install(DIRECTORY mpi-examples/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples" COMPONENT development
        FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.cpp" PATTERN "*.f90" PATTERN "*.F90"
        PATTERN "CMakeLists.txt")
