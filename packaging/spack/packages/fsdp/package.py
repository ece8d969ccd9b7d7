# A recipe for Spack, not run by the project's tests, since Debian has no Spack:
#
#   spack repo add packaging/spack
#   spack dev-build --source-path . fsdp@0.1.0          in a checkout or an unpacked tarball
from spack.package import *


class Fsdp(CMakePackage):
    """Collectives at the memory or link limit, and fully sharded data parallel training state, for MPI programs."""

    license("BSD-3-Clause")

    version("0.1.0")

    variant("shared", default=True, description="Build a shared library")
    variant("rocm", default=False, description="Build the kernels for AMD's GPUs")
    variant("fortran", default=True, description="Build the Fortran module")
    variant("examples", default=False, description="Build the example programs")
    variant("tests", default=False, description="Build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+rocm")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3.1:")
    depends_on("hwloc@2:")
    depends_on("xxhash", type="build")
    depends_on("hip", when="+rocm")
    depends_on("blas", when="+examples")
    depends_on("zlib-api", when="+examples")
    depends_on("cmocka", type="build", when="+tests")

    def cmake_args(self):
        flavour = "mpich" if self.spec["mpi"].name in ("mpich", "mvapich", "mvapich2", "cray-mpich") else "openmpi"
        return [
            self.define("FSDP_MPI", flavour),
            self.define("FSDP_HIP", "ON" if self.spec.satisfies("+rocm") else "OFF"),
            self.define("FSDP_FORTRAN", "ON" if self.spec.satisfies("+fortran") else "OFF"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("FSDP_BUILD_EXAMPLES", "examples"),
            self.define_from_variant("FSDP_BUILD_TESTS", "tests"),
        ]
