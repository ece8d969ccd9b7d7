! Contexts, settings, element types, and what else a program asks of a context: fsdp/context.h, fsdp/config.h,
! fsdp/dtype.h, fsdp/device.h, fsdp/cast.h, fsdp/version.h.
module fsdp_contexts
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_files
   implicit none
   private

   public :: fsdp_agree, fsdp_cast, fsdp_config_init, fsdp_config_init_size, fsdp_device, fsdp_dtype_name
   public :: fsdp_dtype_parse, fsdp_dtype_size, fsdp_finalize, fsdp_has_gpu_aware_mpi, fsdp_has_progress_thread
   public :: fsdp_init, fsdp_init_f, fsdp_memory_name, fsdp_memory_usage, fsdp_node_count, fsdp_node_index
   public :: fsdp_node_rank, fsdp_node_size, fsdp_progress_cpu_seconds, fsdp_rank, fsdp_record_write, fsdp_redop_name
   public :: fsdp_redop_parse
   public :: fsdp_settings_print, fsdp_size, fsdp_stream_set, fsdp_version, fsdp_wait_cpu_seconds, fsdp_wait_seconds

   interface fsdp_init
      module procedure fsdp_init_f ! fsdp_mpi_f08 adds the one for type(MPI_Comm)
   end interface

   interface
      subroutine c_config_init_size(config, size) bind(C, name="fsdp_config_init_size")
         import :: c_size_t, fsdp_config
         type(fsdp_config), intent(out) :: config
         integer(c_size_t), value       :: size
      end subroutine

      integer(c_int) function c_settings_print(ctx, file) bind(C, name="fsdp_settings_print")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx, file
      end function

      integer(c_int) function c_init_f(comm, config, ctx) bind(C, name="fsdp_init_f")
         import :: c_int, c_ptr, fsdp_config
         integer(c_int), value         :: comm
         type(fsdp_config), intent(in) :: config
         type(c_ptr), intent(out)      :: ctx
      end function

      integer(c_int) function c_finalize(ctx) bind(C, name="fsdp_finalize")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_rank(ctx) bind(C, name="fsdp_rank")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_size(ctx) bind(C, name="fsdp_size")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_node_count(ctx) bind(C, name="fsdp_node_count")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_node_index(ctx) bind(C, name="fsdp_node_index")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_node_size(ctx) bind(C, name="fsdp_node_size")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_node_rank(ctx) bind(C, name="fsdp_node_rank")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_has_progress_thread(ctx) bind(C, name="fsdp_has_progress_thread")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      real(c_double) function c_progress_cpu_seconds(ctx) bind(C, name="fsdp_progress_cpu_seconds")
         import :: c_double, c_ptr
         type(c_ptr), value :: ctx
      end function

      real(c_double) function c_wait_seconds(ctx) bind(C, name="fsdp_wait_seconds")
         import :: c_double, c_ptr
         type(c_ptr), value :: ctx
      end function

      real(c_double) function c_wait_cpu_seconds(ctx) bind(C, name="fsdp_wait_cpu_seconds")
         import :: c_double, c_ptr
         type(c_ptr), value :: ctx
      end function

      integer(c_int) function c_memory_usage(ctx, memory) bind(C, name="fsdp_memory_usage")
         import :: c_int, c_ptr, fsdp_memory
         type(c_ptr), value             :: ctx
         type(fsdp_memory), intent(out) :: memory
      end function

      type(c_ptr) function c_memory_name(kind) bind(C, name="fsdp_memory_name")
         import :: c_int, c_ptr
         integer(c_int), value :: kind
      end function

      integer(c_int) function c_record_write(ctx, folder) bind(C, name="fsdp_record_write")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx, folder
      end function

      integer(c_int) function c_agree(ctx, status, detail) bind(C, name="fsdp_agree")
         import :: c_int, c_ptr
         type(c_ptr), value    :: ctx, detail
         integer(c_int), value :: status
      end function

      pure integer(c_size_t) function c_dtype_size(dtype) bind(C, name="fsdp_dtype_size")
         import :: c_int, c_size_t
         integer(c_int), value :: dtype
      end function

      type(c_ptr) function c_dtype_name(dtype) bind(C, name="fsdp_dtype_name")
         import :: c_int, c_ptr
         integer(c_int), value :: dtype
      end function

      integer(c_int) function c_dtype_parse(name, dtype) bind(C, name="fsdp_dtype_parse")
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), intent(out)        :: dtype
      end function

      type(c_ptr) function c_redop_name(op) bind(C, name="fsdp_redop_name")
         import :: c_int, c_ptr
         integer(c_int), value :: op
      end function

      integer(c_int) function c_redop_parse(name, op) bind(C, name="fsdp_redop_parse")
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), intent(out)        :: op
      end function

      integer(c_int) function c_cast(ctx, out, out_dtype, in, in_dtype, count) bind(C, name="fsdp_cast")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, out, in
         integer(c_int), value    :: out_dtype, in_dtype
         integer(c_size_t), value :: count
      end function

      pure integer(c_int) function c_device(ctx) bind(C, name="fsdp_device")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int) function c_has_gpu_aware_mpi(ctx) bind(C, name="fsdp_has_gpu_aware_mpi")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      integer(c_int) function c_stream_set(ctx, stream) bind(C, name="fsdp_stream_set")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx, stream
      end function

      type(c_ptr) function c_version() bind(C, name="fsdp_version")
         import :: c_ptr
      end function
   end interface

contains

   function fsdp_version() result(text)
      character(:), allocatable :: text

      text = fsdp_string(c_version())
   end function

   ! ---- settings

   subroutine fsdp_config_init(config)
      type(fsdp_config), intent(out) :: config

      call c_config_init_size(config, c_sizeof(config))
   end subroutine

   subroutine fsdp_config_init_size(config, size)
      type(fsdp_config), intent(out) :: config
      integer(c_size_t), intent(in) :: size

      call c_config_init_size(config, size)
   end subroutine

   ! To a file of that name, or to standard output.
   subroutine fsdp_settings_print(ctx, file, status)
      type(fsdp_context), intent(in), optional :: ctx
      character(*), intent(in), optional :: file
      integer, intent(out), optional :: status
      type(c_ptr) :: stream
      integer(c_int) :: code

      code = open_stream(file, stream)
      if (code == FSDP_OK) code = c_settings_print(address_or_null(ctx), stream)
      call close_stream(stream)
      call finish(code, 'fsdp_settings_print', ctx, status)
   end subroutine

   ! ---- opening and closing

   ! `communicator` is an integer, as of the module mpi or mpif.h.
   subroutine fsdp_init_f(communicator, ctx, config, status)
      integer, intent(in) :: communicator
      type(fsdp_context), intent(out) :: ctx
      type(fsdp_config), intent(in), optional :: config
      integer, intent(out), optional :: status
      type(fsdp_config) :: settings
      type(c_ptr) :: opened
      integer(c_int) :: code

      if (present(config)) then
         settings = config
      else
         call fsdp_config_init(settings)
      end if
      code = c_init_f(int(communicator, c_int), settings, opened)
      call set_context(ctx, opened, communicator)
      call finish(code, 'fsdp_init', ctx, status)
   end subroutine

   subroutine fsdp_finalize(ctx, status)
      type(fsdp_context), intent(inout) :: ctx
      integer, intent(out), optional :: status
      integer(c_int) :: code

      code = c_finalize(address(ctx))
      call set_context(ctx, c_null_ptr, communicator_of(ctx))
      call finish(code, 'fsdp_finalize', ctx, status)
   end subroutine

   ! ---- looking at a context

   pure integer function fsdp_rank(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_rank = c_rank(address(ctx))
   end function

   pure integer function fsdp_size(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_size = c_size(address(ctx))
   end function

   pure integer function fsdp_node_count(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_node_count = c_node_count(address(ctx))
   end function

   pure integer function fsdp_node_index(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_node_index = c_node_index(address(ctx))
   end function

   pure integer function fsdp_node_size(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_node_size = c_node_size(address(ctx))
   end function

   pure integer function fsdp_node_rank(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_node_rank = c_node_rank(address(ctx))
   end function

   pure logical function fsdp_has_progress_thread(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_has_progress_thread = c_has_progress_thread(address(ctx)) /= 0
   end function

   real(c_double) function fsdp_progress_cpu_seconds(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_progress_cpu_seconds = c_progress_cpu_seconds(address(ctx))
   end function

   real(c_double) function fsdp_wait_seconds(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_wait_seconds = c_wait_seconds(address(ctx))
   end function

   real(c_double) function fsdp_wait_cpu_seconds(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_wait_cpu_seconds = c_wait_cpu_seconds(address(ctx))
   end function

   subroutine fsdp_memory_usage(ctx, memory, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_memory), intent(out) :: memory
      integer, intent(out), optional :: status

      call finish(c_memory_usage(address(ctx), memory), 'fsdp_memory_usage', ctx, status)
   end subroutine

   ! `kind` counts from 0, as FSDP_MEMORY_PARAMETERS and the others do; the line in fsdp_memory%current is kind + 1.
   function fsdp_memory_name(kind) result(text)
      integer, intent(in) :: kind
      character(:), allocatable :: text

      text = fsdp_string(c_memory_name(kind))
   end function

   ! Without `folder`: into FSDP_RECORD_DIR.
   subroutine fsdp_record_write(ctx, folder, status)
      type(fsdp_context), intent(in) :: ctx
      character(*), intent(in), optional :: folder
      integer, intent(out), optional :: status
      character(kind=c_char, len=:), allocatable, target :: text
      type(c_ptr) :: at

      at = c_null_ptr
      if (present(folder)) then
         text = c_text(folder)
         at = c_loc(text)
      end if
      call finish(c_record_write(address(ctx), at), 'fsdp_record_write', ctx, status)
   end subroutine

   ! What this rank has to say, `verdict` and `detail`, becomes one status on all ranks.
   subroutine fsdp_agree(ctx, verdict, detail, status)
      type(fsdp_context), intent(in) :: ctx
      integer, intent(in) :: verdict
      character(*), intent(in), optional :: detail
      integer, intent(out), optional :: status
      character(kind=c_char, len=:), allocatable, target :: text

      text = c_null_char
      if (present(detail)) text = c_text(detail)
      call finish(c_agree(address(ctx), verdict, c_loc(text)), 'fsdp_agree', ctx, status)
   end subroutine

   ! ---- element types and reductions

   pure integer(c_size_t) function fsdp_dtype_size(dtype)
      integer, intent(in) :: dtype

      fsdp_dtype_size = c_dtype_size(dtype)
   end function

   function fsdp_dtype_name(dtype) result(text)
      integer, intent(in) :: dtype
      character(:), allocatable :: text

      text = fsdp_string(c_dtype_name(dtype))
   end function

   subroutine fsdp_dtype_parse(name, dtype, status)
      character(*), intent(in) :: name
      integer, intent(inout) :: dtype
      integer, intent(out), optional :: status

      call finish(c_dtype_parse(c_text(name), dtype), 'fsdp_dtype_parse', status=status)
   end subroutine

   function fsdp_redop_name(op) result(text)
      integer, intent(in) :: op
      character(:), allocatable :: text

      text = fsdp_string(c_redop_name(op))
   end function

   subroutine fsdp_redop_parse(name, op, status)
      character(*), intent(in) :: name
      integer, intent(inout) :: op
      integer, intent(out), optional :: status

      call finish(c_redop_parse(c_text(name), op), 'fsdp_redop_parse', status=status)
   end subroutine

   ! Copies the elements of an array to another type. Arrays of 16 bits are FSDP_BF16 or FSDP_F16.
   subroutine fsdp_cast(ctx, out, out_dtype, in, in_dtype, status)
      type(fsdp_context), intent(in) :: ctx
      type(*), intent(inout), target :: out(..)
      integer, intent(in) :: out_dtype
      type(*), intent(in), target :: in(..)
      integer, intent(in) :: in_dtype
      integer, intent(out), optional :: status

      if (size(out, kind=c_size_t) /= size(in, kind=c_size_t)) then
         call refuse('the arrays have different sizes', 'fsdp_cast', ctx, status)
      else if (.not. (is_contiguous(out) .and. is_contiguous(in))) then
         call refuse('an array is not contiguous', 'fsdp_cast', ctx, status)
      else
         call finish(c_cast(address(ctx), c_loc(out), out_dtype, c_loc(in), in_dtype, size(in, kind=c_size_t)), &
                     'fsdp_cast', ctx, status)
      end if
   end subroutine

   ! ---- GPUs

   pure integer function fsdp_device(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_device = c_device(address(ctx))
   end function

   pure logical function fsdp_has_gpu_aware_mpi(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_has_gpu_aware_mpi = c_has_gpu_aware_mpi(address(ctx)) /= 0
   end function

   subroutine fsdp_stream_set(ctx, stream, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: stream
      integer, intent(out), optional :: status

      call finish(c_stream_set(address(ctx), stream), 'fsdp_stream_set', ctx, status)
   end subroutine
end module
