! A failed check ends the job: the other ranks would wait for this one.
module checks
   use mpi, only: MPI_Abort, MPI_COMM_WORLD
   use, intrinsic :: iso_fortran_env, only: error_unit
   implicit none
   private
   public :: check, check_status

contains

   subroutine check(good, text)
      logical, intent(in) :: good
      character(*), intent(in) :: text
      integer :: error

      if (good) return
      write (error_unit, '(a)') 'not so: ' // text
      call MPI_Abort(MPI_COMM_WORLD, 1, error)
   end subroutine

   subroutine check_status(status, wanted, text)
      integer, intent(in) :: status, wanted
      character(*), intent(in) :: text
      character(40) :: both

      write (both, '(i0, a, i0)') status, ' instead of ', wanted
      call check(status == wanted, text // ': status ' // trim(both))
   end subroutine
end module
