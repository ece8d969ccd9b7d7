! What the other modules stand on: handles, what becomes of a status, and C's texts.
module fsdp_base
   use, intrinsic :: iso_c_binding
   use, intrinsic :: iso_fortran_env, only: error_unit
   use mpi, only: MPI_Abort, MPI_COMM_WORLD
   use fsdp_constants, only: FSDP_ERR_ARG, FSDP_OK
   implicit none
   private

   public :: fsdp_is_null, fsdp_last_error, fsdp_status_name, fsdp_status_text, fsdp_string
   public :: address, address_or_null, c_text, communicator_of, context_of, finish, flag, refuse, set_context
   public :: set_handle

   ! A pointer of C's, and what a failed call on it needs. A copy of a handle is a handle of the same thing.
   type, abstract, public :: any_handle
      private
      type(c_ptr) :: c = c_null_ptr
      type(c_ptr) :: context = c_null_ptr
      integer     :: communicator = MPI_COMM_WORLD
   end type

   type, extends(any_handle), public :: fsdp_context
   end type

   interface fsdp_string
      module procedure string_of_pointer, string_of_characters
   end interface

   character(512) :: refusal = '' ! the last failure, if this module has found it, and not the library

   interface
      type(c_ptr) function c_status_name(status) bind(C, name="fsdp_status_name")
         import :: c_int, c_ptr
         integer(c_int), value :: status
      end function

      type(c_ptr) function c_status_text(status) bind(C, name="fsdp_status_text")
         import :: c_int, c_ptr
         integer(c_int), value :: status
      end function

      type(c_ptr) function c_last_error(ctx) bind(C, name="fsdp_last_error")
         import :: c_ptr
         type(c_ptr), value :: ctx
      end function

      integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
         import :: c_ptr, c_size_t
         type(c_ptr), value :: text
      end function

      integer(c_int) function c_usleep(microseconds) bind(C, name="usleep")
         import :: c_int
         integer(c_int), value :: microseconds ! unsigned in C, of the same width
      end function
   end interface

contains

   pure function address(handle) result(c)
      class(any_handle), intent(in) :: handle
      type(c_ptr) :: c

      c = handle%c
   end function

   pure function address_or_null(handle) result(c)
      class(any_handle), intent(in), optional :: handle
      type(c_ptr) :: c

      c = c_null_ptr
      if (present(handle)) c = handle%c
   end function

   ! Of C's context; null for a handle that has never been set.
   pure function context_of(handle) result(c)
      class(any_handle), intent(in) :: handle
      type(c_ptr) :: c

      c = handle%context
   end function

   pure integer function communicator_of(handle)
      class(any_handle), intent(in) :: handle

      communicator_of = handle%communicator
   end function

   subroutine set_context(ctx, c, communicator)
      type(fsdp_context), intent(inout) :: ctx
      type(c_ptr), intent(in) :: c
      integer, intent(in) :: communicator

      ctx%c = c
      ctx%context = c
      ctx%communicator = communicator
   end subroutine

   ! `handle` becomes the one of `c`, which belongs to the context of `origin`.
   subroutine set_handle(handle, c, origin)
      class(any_handle), intent(inout) :: handle
      type(c_ptr), intent(in) :: c
      class(any_handle), intent(in) :: origin

      handle%c = c
      handle%context = origin%context
      handle%communicator = origin%communicator
   end subroutine

   ! Whether there is nothing behind a handle: it has not been set, has been released, or was not found.
   pure logical function fsdp_is_null(handle)
      class(any_handle), intent(in) :: handle

      fsdp_is_null = .not. c_associated(handle%c)
   end function

   ! The end of every call: hands the status on; or, where nobody takes it, prints what has failed and ends the job, as
   ! MPI does.
   subroutine finish(code, what, handle, status)
      integer(c_int), intent(in) :: code
      character(*), intent(in) :: what
      class(any_handle), intent(in), optional :: handle
      integer, intent(out), optional :: status

      if (code /= FSDP_OK) refusal = ''
      call hand_on(code, what, handle, status)
   end subroutine

   ! A failure that this module finds before the library is called.
   subroutine refuse(text, what, handle, status)
      character(*), intent(in) :: text, what
      class(any_handle), intent(in), optional :: handle
      integer, intent(out), optional :: status

      refusal = what // ': ' // text
      call hand_on(FSDP_ERR_ARG, what, handle, status)
   end subroutine

   subroutine hand_on(code, what, handle, status)
      integer(c_int), intent(in) :: code
      character(*), intent(in) :: what
      class(any_handle), intent(in), optional :: handle
      integer, intent(out), optional :: status
      character(:), allocatable :: detail
      integer, parameter :: moment = 200000 ! microseconds
      integer :: communicator, error

      if (present(status)) then
         status = code
      else if (code /= FSDP_OK) then
         communicator = MPI_COMM_WORLD
         if (present(handle)) then
            communicator = handle%communicator
            detail = message(handle%context)
         else
            detail = message(c_null_ptr)
         end if
         write (error_unit, '(a)') what // ': ' // fsdp_status_name(code) // ': ' // detail
         flush (error_unit)
         error = int(c_usleep(int(moment, c_int))) ! mpiexec of MPICH drops what it has not yet passed on when a job is aborted
         call MPI_Abort(communicator, 1, error)
      end if
   end subroutine

   function message(context) result(text)
      type(c_ptr), intent(in) :: context
      character(:), allocatable :: text

      if (refusal /= '') then
         text = trim(refusal)
      else
         text = string_of_pointer(c_last_error(context))
      end if
   end function

   ! The detail of the last failure, on a context or of a call without one.
   function fsdp_last_error(ctx) result(text)
      type(fsdp_context), intent(in), optional :: ctx
      character(:), allocatable :: text

      text = message(address_or_null(ctx))
   end function

   function fsdp_status_name(status) result(text)
      integer, intent(in) :: status
      character(:), allocatable :: text

      text = string_of_pointer(c_status_name(status))
   end function

   function fsdp_status_text(status) result(text)
      integer, intent(in) :: status
      character(:), allocatable :: text

      text = string_of_pointer(c_status_text(status))
   end function

   ! A text of C's; "" for a null pointer.
   function string_of_pointer(pointer) result(text)
      type(c_ptr), intent(in) :: pointer
      character(:), allocatable :: text
      character(kind=c_char), pointer :: characters(:)

      text = ''
      if (.not. c_associated(pointer)) return
      call c_f_pointer(pointer, characters, [c_strlen(pointer)])
      text = whole(characters)
   end function

   ! What a member of a struct holds, up to its NUL.
   function string_of_characters(characters) result(text)
      character(kind=c_char), intent(in) :: characters(:)
      character(:), allocatable :: text
      integer :: n

      do n = 0, size(characters) - 1
         if (characters(n + 1) == c_null_char) exit
      end do
      text = whole(characters(:n))
   end function

   pure function whole(characters) result(text)
      character(kind=c_char), intent(in) :: characters(:)
      character(size(characters)) :: text
      integer :: i

      do i = 1, size(characters)
         text(i:i) = characters(i)
      end do
   end function

   ! For C, without the blanks at its end.
   pure function c_text(text)
      character(*), intent(in) :: text
      character(kind=c_char, len=len_trim(text) + 1) :: c_text

      c_text = trim(text) // c_null_char
   end function

   pure integer(c_int) function flag(on)
      logical, intent(in) :: on

      flag = merge(1_c_int, 0_c_int, on)
   end function
end module
