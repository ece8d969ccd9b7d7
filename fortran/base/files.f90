! Where C prints to a FILE, Fortran names a file; without a name it is standard output.
module fsdp_files
   use, intrinsic :: iso_c_binding
   use, intrinsic :: iso_fortran_env, only: output_unit
   use fsdp_constants, only: FSDP_ERR_IO, FSDP_OK
   use fsdp_base, only: c_text
   implicit none
   private
   public :: close_stream, open_stream

   interface
      type(c_ptr) function c_fopen(name, mode) bind(C, name="fopen")
         import :: c_char, c_ptr
         character(kind=c_char), intent(in) :: name(*), mode(*)
      end function

      type(c_ptr) function c_fdopen(descriptor, mode) bind(C, name="fdopen")
         import :: c_char, c_int, c_ptr
         integer(c_int), value              :: descriptor
         character(kind=c_char), intent(in) :: mode(*)
      end function

      integer(c_int) function c_dup(descriptor) bind(C, name="dup")
         import :: c_int
         integer(c_int), value :: descriptor
      end function

      integer(c_int) function c_fclose(stream) bind(C, name="fclose")
         import :: c_int, c_ptr
         type(c_ptr), value :: stream
      end function
   end interface

contains

   integer(c_int) function open_stream(file, stream) result(code)
      character(*), intent(in), optional :: file
      type(c_ptr), intent(out) :: stream

      if (present(file)) then
         stream = c_fopen(c_text(file), c_text('w'))
      else
         flush (output_unit)
         stream = c_fdopen(c_dup(1_c_int), c_text('w'))
      end if
      code = merge(FSDP_OK, FSDP_ERR_IO, c_associated(stream))
   end function

   subroutine close_stream(stream)
      type(c_ptr), intent(in) :: stream

      if (c_associated(stream)) then
         if (c_fclose(stream) /= 0) return ! the disk is full: what is missing in the file says so
      end if
   end subroutine
end module
