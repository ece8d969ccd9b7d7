! Pipelines: fsdp/pipeline.h. Stages, micro-batches and ranks count from 0.
module fsdp_pipelines
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_models
   implicit none
   private

   public :: fsdp_pipeline_callbacks_init, fsdp_pipeline_callbacks_init_size, fsdp_pipeline_create
   public :: fsdp_pipeline_destroy, fsdp_pipeline_get_info, fsdp_pipeline_options_init
   public :: fsdp_pipeline_options_init_size, fsdp_pipeline_rank_of_stage, fsdp_pipeline_set_units, fsdp_pipeline_step
   public :: fsdp_pipeline_evaluate

   type, extends(any_handle), public :: fsdp_pipeline
   end type

   interface
      subroutine c_options_init_size(options, size) bind(C, name="fsdp_pipeline_options_init_size")
         import :: c_size_t, fsdp_pipeline_options
         type(fsdp_pipeline_options), intent(out) :: options
         integer(c_size_t), value                 :: size
      end subroutine

      subroutine c_callbacks_init_size(callbacks, size) bind(C, name="fsdp_pipeline_callbacks_init_size")
         import :: c_size_t, fsdp_pipeline_callbacks
         type(fsdp_pipeline_callbacks), intent(out) :: callbacks
         integer(c_size_t), value                   :: size
      end subroutine

      integer(c_int) function c_create(ctx, options, callbacks, pipeline) bind(C, name="fsdp_pipeline_create")
         import :: c_int, c_ptr, fsdp_pipeline_callbacks, fsdp_pipeline_options
         type(c_ptr), value                        :: ctx
         type(fsdp_pipeline_options), intent(in)   :: options
         type(fsdp_pipeline_callbacks), intent(in) :: callbacks
         type(c_ptr), intent(out)                  :: pipeline
      end function

      integer(c_int) function c_set_units(pipeline, stage, units, n_units) bind(C, name="fsdp_pipeline_set_units")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: pipeline
         integer(c_int), value    :: stage
         type(c_ptr), intent(in)  :: units(*)
         integer(c_size_t), value :: n_units
      end function

      integer(c_int) function c_rank_of_stage(pipeline, stage) bind(C, name="fsdp_pipeline_rank_of_stage")
         import :: c_int, c_ptr
         type(c_ptr), value    :: pipeline
         integer(c_int), value :: stage
      end function

      integer(c_int) function c_get_info(pipeline, info) bind(C, name="fsdp_pipeline_get_info")
         import :: c_int, c_ptr, fsdp_pipeline_info
         type(c_ptr), value                      :: pipeline
         type(fsdp_pipeline_info), intent(inout) :: info
      end function

      integer(c_int) function c_step(pipeline, loss) bind(C, name="fsdp_pipeline_step")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value            :: pipeline
         real(c_double), intent(inout) :: loss
      end function

      integer(c_int) function c_evaluate(pipeline, loss) bind(C, name="fsdp_pipeline_evaluate")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value            :: pipeline
         real(c_double), intent(inout) :: loss
      end function

      subroutine c_destroy(pipeline) bind(C, name="fsdp_pipeline_destroy")
         import :: c_ptr
         type(c_ptr), value :: pipeline
      end subroutine
   end interface

contains

   subroutine fsdp_pipeline_options_init(options)
      type(fsdp_pipeline_options), intent(out) :: options

      call c_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_pipeline_options_init_size(options, size)
      type(fsdp_pipeline_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_options_init_size(options, size)
   end subroutine

   subroutine fsdp_pipeline_callbacks_init(callbacks)
      type(fsdp_pipeline_callbacks), intent(out) :: callbacks

      call c_callbacks_init_size(callbacks, c_sizeof(callbacks))
   end subroutine

   subroutine fsdp_pipeline_callbacks_init_size(callbacks, size)
      type(fsdp_pipeline_callbacks), intent(out) :: callbacks
      integer(c_size_t), intent(in) :: size

      call c_callbacks_init_size(callbacks, size)
   end subroutine

   ! `schedule`, a name, or `text` or `file` come in place of those members of the options. `callbacks` has a c_funloc() of each
   ! function, of the interfaces fsdp_pipeline_forward and so on.
   subroutine fsdp_pipeline_create(ctx, options, callbacks, pipeline, schedule, text, file, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_pipeline_options), intent(in) :: options
      type(fsdp_pipeline_callbacks), intent(in) :: callbacks
      type(fsdp_pipeline), intent(out) :: pipeline
      character(*), intent(in), optional :: schedule, text, file
      integer, intent(out), optional :: status
      character(kind=c_char, len=:), allocatable, target :: c_schedule, c_whole, c_file
      type(fsdp_pipeline_options) :: chosen
      type(c_ptr) :: made
      integer(c_int) :: code

      chosen = options
      if (present(schedule)) then
         c_schedule = trim(schedule)//c_null_char
         chosen%schedule = c_loc(c_schedule)
      end if
      if (present(text)) then
         c_whole = trim(text)//c_null_char
         chosen%text = c_loc(c_whole)
      end if
      if (present(file)) then
         c_file = trim(file)//c_null_char
         chosen%file = c_loc(c_file)
      end if
      made = c_null_ptr
      code = c_create(address(ctx), chosen, callbacks, made)
      call set_handle(pipeline, made, ctx)
      call finish(code, 'fsdp_pipeline_create', ctx, status)
   end subroutine

   ! An array without elements for a stage without parameters.
   subroutine fsdp_pipeline_set_units(pipeline, stage, units, status)
      type(fsdp_pipeline), intent(in) :: pipeline
      integer, intent(in) :: stage
      type(fsdp_unit), intent(in) :: units(:)
      integer, intent(out), optional :: status
      type(c_ptr) :: addresses(size(units))
      integer :: i

      do i = 1, size(units)
         addresses(i) = address(units(i))
      end do
      call finish(c_set_units(address(pipeline), stage, addresses, size(units, kind=c_size_t)), &
                  'fsdp_pipeline_set_units', pipeline, status)
   end subroutine

   integer function fsdp_pipeline_rank_of_stage(pipeline, stage)
      type(fsdp_pipeline), intent(in) :: pipeline
      integer, intent(in) :: stage

      fsdp_pipeline_rank_of_stage = c_rank_of_stage(address(pipeline), stage)
   end function

   subroutine fsdp_pipeline_get_info(pipeline, info, status)
      type(fsdp_pipeline), intent(in) :: pipeline
      type(fsdp_pipeline_info), intent(out) :: info
      integer, intent(out), optional :: status

      call finish(c_get_info(address(pipeline), info), 'fsdp_pipeline_get_info', pipeline, status)
   end subroutine

   subroutine fsdp_pipeline_step(pipeline, loss, status)
      type(fsdp_pipeline), intent(in) :: pipeline
      real(c_double), intent(out) :: loss
      integer, intent(out), optional :: status

      loss = 0
      call finish(c_step(address(pipeline), loss), 'fsdp_pipeline_step', pipeline, status)
   end subroutine

   subroutine fsdp_pipeline_evaluate(pipeline, loss, status)
      type(fsdp_pipeline), intent(in) :: pipeline
      real(c_double), intent(out) :: loss
      integer, intent(out), optional :: status

      loss = 0
      call finish(c_evaluate(address(pipeline), loss), 'fsdp_pipeline_evaluate', pipeline, status)
   end subroutine

   subroutine fsdp_pipeline_destroy(pipeline)
      type(fsdp_pipeline), intent(inout) :: pipeline

      call c_destroy(address(pipeline))
      call set_handle(pipeline, c_null_ptr, pipeline)
   end subroutine
end module
