! Gradient hooks, batch normalisation over all ranks, and how units are divided: fsdp/hook.h, fsdp/batch_norm.h,
! fsdp/layout.h.
module fsdp_hooks
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_models
   implicit none
   private

   public :: fsdp_batch_norm_backward, fsdp_batch_norm_evaluate, fsdp_batch_norm_forward, fsdp_batch_norm_options_init
   public :: fsdp_batch_norm_options_init_size, fsdp_deal_tensors, fsdp_hook_budget, fsdp_hook_bytes
   public :: fsdp_hook_callbacks_init, fsdp_hook_callbacks_init_size, fsdp_hook_custom, fsdp_hook_destroy
   public :: fsdp_hook_half, fsdp_hook_int8, fsdp_hook_power_sgd, fsdp_int8_options_init, fsdp_int8_options_init_size
   public :: fsdp_layout_init, fsdp_layout_intervals, fsdp_model_set_hook, fsdp_power_sgd_options_init
   public :: fsdp_power_sgd_options_init_size, fsdp_tensor_cost

   type, extends(any_handle), public :: fsdp_hook
   end type

   interface
      subroutine c_batch_norm_options_init_size(options, size) bind(C, name="fsdp_batch_norm_options_init_size")
         import :: c_size_t, fsdp_batch_norm_options
         type(fsdp_batch_norm_options), intent(out) :: options
         integer(c_size_t), value                   :: size
      end subroutine

      integer(c_int) function c_batch_norm_forward(ctx, shape, options, x, weight, bias, running, y, saved&
            ) bind(C, name="fsdp_batch_norm_forward")
         import :: c_int, c_ptr, fsdp_batch_norm_options, fsdp_batch_norm_saved, fsdp_batch_norm_shape
         type(c_ptr), value                         :: ctx, x, weight, bias, running, y
         type(fsdp_batch_norm_shape), intent(in)    :: shape
         type(fsdp_batch_norm_options), intent(in)  :: options
         type(fsdp_batch_norm_saved), intent(inout) :: saved
      end function

      integer(c_int) function c_batch_norm_backward(ctx, shape, x, weight, saved, dy, dx, d_weight, d_bias&
            ) bind(C, name="fsdp_batch_norm_backward")
         import :: c_int, c_ptr, fsdp_batch_norm_saved, fsdp_batch_norm_shape
         type(c_ptr), value                      :: ctx, x, weight, dy, dx, d_weight, d_bias
         type(fsdp_batch_norm_shape), intent(in) :: shape
         type(fsdp_batch_norm_saved), intent(in) :: saved
      end function

      integer(c_int) function c_batch_norm_evaluate(ctx, shape, options, x, weight, bias, running, y&
            ) bind(C, name="fsdp_batch_norm_evaluate")
         import :: c_int, c_ptr, fsdp_batch_norm_options, fsdp_batch_norm_running, fsdp_batch_norm_shape
         type(c_ptr), value                        :: ctx, x, weight, bias, y
         type(fsdp_batch_norm_shape), intent(in)   :: shape
         type(fsdp_batch_norm_options), intent(in) :: options
         type(fsdp_batch_norm_running), intent(in) :: running
      end function

      integer(c_int) function c_layout_init(n_tensors, counts, owners, size, alignment, granularity, layout&
            ) bind(C, name="fsdp_layout_init")
         import :: c_int, c_ptr, c_size_t, fsdp_layout
         integer(c_size_t), value       :: n_tensors, alignment, granularity
         integer(c_size_t), intent(in)  :: counts(*)
         type(c_ptr), value             :: owners
         integer(c_int), value          :: size
         type(fsdp_layout), intent(out) :: layout
      end function

      integer(c_int) function c_layout_intervals(layout, rank, n_tensors, counts, owners, intervals, n&
            ) bind(C, name="fsdp_layout_intervals")
         import :: c_int, c_ptr, c_size_t, fsdp_interval, fsdp_layout
         type(fsdp_layout), intent(in)      :: layout
         integer(c_int), value              :: rank
         integer(c_size_t), value           :: n_tensors
         integer(c_size_t), intent(in)      :: counts(*)
         type(c_ptr), value                 :: owners
         type(fsdp_interval), intent(inout) :: intervals(*)
         integer(c_size_t), intent(out)     :: n
      end function

      pure real(c_double) function c_tensor_cost(n_dims, shape, matrix) bind(C, name="fsdp_tensor_cost")
         import :: c_double, c_int, c_size_t
         integer(c_size_t), value      :: n_dims
         integer(c_size_t), intent(in) :: shape(*)
         integer(c_int), value         :: matrix
      end function

      integer(c_int) function c_deal_tensors(n_tensors, costs, size, owners) bind(C, name="fsdp_deal_tensors")
         import :: c_double, c_int, c_size_t
         integer(c_size_t), value    :: n_tensors
         real(c_double), intent(in)  :: costs(*)
         integer(c_int), value       :: size
         integer(c_int), intent(out) :: owners(*)
      end function

      subroutine c_int8_options_init_size(options, size) bind(C, name="fsdp_int8_options_init_size")
         import :: c_size_t, fsdp_int8_options
         type(fsdp_int8_options), intent(out) :: options
         integer(c_size_t), value             :: size
      end subroutine

      subroutine c_power_sgd_options_init_size(options, size) bind(C, name="fsdp_power_sgd_options_init_size")
         import :: c_size_t, fsdp_power_sgd_options
         type(fsdp_power_sgd_options), intent(out) :: options
         integer(c_size_t), value                  :: size
      end subroutine

      subroutine c_hook_callbacks_init_size(options, size) bind(C, name="fsdp_hook_callbacks_init_size")
         import :: c_size_t, fsdp_hook_callbacks
         type(fsdp_hook_callbacks), intent(out) :: options
         integer(c_size_t), value               :: size
      end subroutine

      integer(c_int) function c_hook_half(ctx, dtype, hook) bind(C, name="fsdp_hook_half")
         import :: c_int, c_ptr
         type(c_ptr), value       :: ctx
         integer(c_int), value    :: dtype
         type(c_ptr), intent(out) :: hook
      end function

      integer(c_int) function c_hook_int8(ctx, options, hook) bind(C, name="fsdp_hook_int8")
         import :: c_int, c_ptr, fsdp_int8_options
         type(c_ptr), value                  :: ctx
         type(fsdp_int8_options), intent(in) :: options
         type(c_ptr), intent(out)            :: hook
      end function

      integer(c_int) function c_hook_power_sgd(ctx, options, hook) bind(C, name="fsdp_hook_power_sgd")
         import :: c_int, c_ptr, fsdp_power_sgd_options
         type(c_ptr), value                       :: ctx
         type(fsdp_power_sgd_options), intent(in) :: options
         type(c_ptr), intent(out)                 :: hook
      end function

      integer(c_int) function c_hook_custom(ctx, callbacks, hook) bind(C, name="fsdp_hook_custom")
         import :: c_int, c_ptr, fsdp_hook_callbacks
         type(c_ptr), value                    :: ctx
         type(fsdp_hook_callbacks), intent(in) :: callbacks
         type(c_ptr), intent(out)              :: hook
      end function

      integer(c_int) function c_model_set_hook(model, hook) bind(C, name="fsdp_model_set_hook")
         import :: c_int, c_ptr
         type(c_ptr), value :: model, hook
      end function

      integer(c_int) function c_hook_budget(hook, model, budget) bind(C, name="fsdp_hook_budget")
         import :: c_int, c_ptr, fsdp_budget
         type(c_ptr), value               :: hook, model
         type(fsdp_budget), intent(inout) :: budget
      end function

      subroutine c_hook_destroy(hook) bind(C, name="fsdp_hook_destroy")
         import :: c_ptr
         type(c_ptr), value :: hook
      end subroutine

      integer(c_int) function c_hook_bytes(hook, sent, uncompressed) bind(C, name="fsdp_hook_bytes")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value              :: hook
         integer(c_int64_t), intent(out) :: sent, uncompressed
      end function
   end interface

contains

   ! ---- hooks

   subroutine fsdp_int8_options_init(options)
      type(fsdp_int8_options), intent(out) :: options

      call c_int8_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_int8_options_init_size(options, size)
      type(fsdp_int8_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_int8_options_init_size(options, size)
   end subroutine

   subroutine fsdp_power_sgd_options_init(options)
      type(fsdp_power_sgd_options), intent(out) :: options

      call c_power_sgd_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_power_sgd_options_init_size(options, size)
      type(fsdp_power_sgd_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_power_sgd_options_init_size(options, size)
   end subroutine

   subroutine fsdp_hook_callbacks_init(options)
      type(fsdp_hook_callbacks), intent(out) :: options

      call c_hook_callbacks_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_hook_callbacks_init_size(options, size)
      type(fsdp_hook_callbacks), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_hook_callbacks_init_size(options, size)
   end subroutine

   ! The handle of what has been made; null after an error.
   subroutine finish_hook(code, made, what, ctx, hook, status)
      integer(c_int), intent(in) :: code
      type(c_ptr), intent(in) :: made
      character(*), intent(in) :: what
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_hook), intent(inout) :: hook
      integer, intent(out), optional :: status

      call set_handle(hook, made, ctx)
      call finish(code, what, ctx, status)
   end subroutine

   ! `dtype` is FSDP_BF16 or FSDP_F16.
   subroutine fsdp_hook_half(ctx, dtype, hook, status)
      type(fsdp_context), intent(in) :: ctx
      integer, intent(in) :: dtype
      type(fsdp_hook), intent(out) :: hook
      integer, intent(out), optional :: status
      type(c_ptr) :: made
      integer(c_int) :: code

      made = c_null_ptr
      code = c_hook_half(address(ctx), dtype, made)
      call finish_hook(code, made, 'fsdp_hook_half', ctx, hook, status)
   end subroutine

   subroutine fsdp_hook_int8(ctx, hook, options, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_hook), intent(out) :: hook
      type(fsdp_int8_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(fsdp_int8_options) :: chosen
      type(c_ptr) :: made
      integer(c_int) :: code

      if (present(options)) then
         chosen = options
      else
         call fsdp_int8_options_init(chosen)
      end if
      made = c_null_ptr
      code = c_hook_int8(address(ctx), chosen, made)
      call finish_hook(code, made, 'fsdp_hook_int8', ctx, hook, status)
   end subroutine

   subroutine fsdp_hook_power_sgd(ctx, hook, options, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_hook), intent(out) :: hook
      type(fsdp_power_sgd_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(fsdp_power_sgd_options) :: chosen
      type(c_ptr) :: made
      integer(c_int) :: code

      if (present(options)) then
         chosen = options
      else
         call fsdp_power_sgd_options_init(chosen)
      end if
      made = c_null_ptr
      code = c_hook_power_sgd(address(ctx), chosen, made)
      call finish_hook(code, made, 'fsdp_hook_power_sgd', ctx, hook, status)
   end subroutine

   ! `before` and `after` each reduction, with `state`, a c_loc() of the program's; what is not given is not called.
   subroutine fsdp_hook_custom(ctx, hook, before, after, state, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_hook), intent(out) :: hook
      procedure(fsdp_hook_function), optional :: before, after
      type(c_ptr), intent(in), optional :: state
      integer, intent(out), optional :: status
      type(fsdp_hook_callbacks) :: callbacks
      type(c_ptr) :: made
      integer(c_int) :: code

      call fsdp_hook_callbacks_init(callbacks)
      if (present(before)) callbacks%before = c_funloc(before)
      if (present(after)) callbacks%after = c_funloc(after)
      if (present(state)) callbacks%state = state
      made = c_null_ptr
      code = c_hook_custom(address(ctx), callbacks, made)
      call finish_hook(code, made, 'fsdp_hook_custom', ctx, hook, status)
   end subroutine

   ! Without a hook, none from here on.
   subroutine fsdp_model_set_hook(model, hook, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_hook), intent(in), optional :: hook
      integer, intent(out), optional :: status

      call finish(c_model_set_hook(address(model), address_or_null(hook)), 'fsdp_model_set_hook', model, status)
   end subroutine

   subroutine fsdp_hook_budget(hook, model, budget, status)
      type(fsdp_hook), intent(in) :: hook
      type(fsdp_model), intent(in) :: model
      type(fsdp_budget), intent(inout) :: budget
      integer, intent(out), optional :: status

      call finish(c_hook_budget(address(hook), address(model), budget), 'fsdp_hook_budget', hook, status)
   end subroutine

   subroutine fsdp_hook_destroy(hook)
      type(fsdp_hook), intent(inout) :: hook

      call c_hook_destroy(address(hook))
      call set_handle(hook, c_null_ptr, hook)
   end subroutine

   subroutine fsdp_hook_bytes(hook, sent, uncompressed, status)
      type(fsdp_hook), intent(in) :: hook
      integer(c_int64_t), intent(out) :: sent, uncompressed
      integer, intent(out), optional :: status

      sent = 0
      uncompressed = 0
      call finish(c_hook_bytes(address(hook), sent, uncompressed), 'fsdp_hook_bytes', hook, status)
   end subroutine

   ! ---- batch normalisation. Arrays are contiguous: x, y and their gradients have the extents pixels, channels,
   ! samples.

   subroutine fsdp_batch_norm_options_init(options)
      type(fsdp_batch_norm_options), intent(out) :: options

      call c_batch_norm_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_batch_norm_options_init_size(options, size)
      type(fsdp_batch_norm_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_batch_norm_options_init_size(options, size)
   end subroutine

   pure type(fsdp_batch_norm_shape) function shape_of(x)
      real(c_float), intent(in) :: x(:, :, :)

      shape_of%pixels = size(x, 1, kind=c_size_t)
      shape_of%channels = size(x, 2, kind=c_size_t)
      shape_of%samples = size(x, 3, kind=c_size_t)
   end function

   ! `running_mean` and `running_variance`, both or none, move towards those of the batch. `saved_mean`, `saved_scale`
   ! and `count` are what the backward pass needs.
   subroutine fsdp_batch_norm_forward(ctx, x, weight, bias, y, saved_mean, saved_scale, count, running_mean, &
                                      running_variance, options, status)
      type(fsdp_context), intent(in) :: ctx
      real(c_float), intent(in), target, contiguous :: x(:, :, :), weight(:), bias(:)
      real(c_float), intent(inout), target, contiguous :: y(:, :, :)
      real(c_double), intent(inout), target, contiguous :: saved_mean(:), saved_scale(:)
      real(c_double), intent(out) :: count
      real(c_float), intent(inout), optional, target, contiguous :: running_mean(:), running_variance(:)
      type(fsdp_batch_norm_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(fsdp_batch_norm_running), target :: running
      type(fsdp_batch_norm_saved) :: saved
      type(c_ptr) :: given
      integer(c_int) :: code

      count = 0
      given = c_null_ptr
      if (present(running_mean) .and. present(running_variance)) then
         running = fsdp_batch_norm_running(c_loc(running_mean), c_loc(running_variance))
         given = c_loc(running)
      end if
      saved = fsdp_batch_norm_saved(c_loc(saved_mean), c_loc(saved_scale), 0.0_c_double)
      code = c_batch_norm_forward(address(ctx), shape_of(x), batch_norm_options_or_default(options), c_loc(x), &
                                  c_loc(weight), c_loc(bias), given, c_loc(y), saved)
      count = saved%count
      call finish(code, 'fsdp_batch_norm_forward', ctx, status)
   end subroutine

   function batch_norm_options_or_default(options) result(chosen)
      type(fsdp_batch_norm_options), intent(in), optional :: options
      type(fsdp_batch_norm_options) :: chosen

      if (present(options)) then
         chosen = options
      else
         call fsdp_batch_norm_options_init(chosen)
      end if
   end function

   subroutine fsdp_batch_norm_backward(ctx, x, weight, dy, dx, d_weight, d_bias, saved_mean, saved_scale, count, status)
      type(fsdp_context), intent(in) :: ctx
      real(c_float), intent(in), target, contiguous :: x(:, :, :), weight(:), dy(:, :, :)
      real(c_float), intent(inout), target, contiguous :: dx(:, :, :), d_weight(:), d_bias(:)
      real(c_double), intent(in), target, contiguous :: saved_mean(:), saved_scale(:)
      real(c_double), intent(in) :: count
      integer, intent(out), optional :: status
      type(fsdp_batch_norm_saved) :: saved

      saved = fsdp_batch_norm_saved(c_loc(saved_mean), c_loc(saved_scale), count)
      call finish(c_batch_norm_backward(address(ctx), shape_of(x), c_loc(x), c_loc(weight), saved, c_loc(dy), &
                  c_loc(dx), c_loc(d_weight), c_loc(d_bias)), 'fsdp_batch_norm_backward', ctx, status)
   end subroutine

   subroutine fsdp_batch_norm_evaluate(ctx, x, weight, bias, running_mean, running_variance, y, options, status)
      type(fsdp_context), intent(in) :: ctx
      real(c_float), intent(in), target, contiguous :: x(:, :, :), weight(:), bias(:)
      real(c_float), intent(inout), target, contiguous :: y(:, :, :)
      real(c_float), intent(in), target, contiguous :: running_mean(:), running_variance(:)
      type(fsdp_batch_norm_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(fsdp_batch_norm_running) :: running

      running = fsdp_batch_norm_running(c_loc(running_mean), c_loc(running_variance))
      call finish(c_batch_norm_evaluate(address(ctx), shape_of(x), batch_norm_options_or_default(options), c_loc(x), &
                  c_loc(weight), c_loc(bias), running, c_loc(y)), 'fsdp_batch_norm_evaluate', ctx, status)
   end subroutine

   ! ---- how units are divided

   subroutine fsdp_layout_init(counts, size, alignment, granularity, layout, owners, status)
      integer(c_size_t), intent(in) :: counts(:)
      integer, intent(in) :: size
      integer(c_size_t), intent(in) :: alignment, granularity
      type(fsdp_layout), intent(inout) :: layout
      integer(c_int), intent(in), optional, target, contiguous :: owners(:)
      integer, intent(out), optional :: status
      type(c_ptr) :: given

      given = c_null_ptr
      if (present(owners)) given = c_loc(owners)
      call finish(c_layout_init(ubound(counts, 1, kind=c_size_t), counts, given, size, alignment, granularity, &
                  layout), 'fsdp_layout_init', status=status)
   end subroutine

   ! `intervals` has room for one for each tensor; `n` of them are filled in. Ranks and tensors count from 0.
   subroutine fsdp_layout_intervals(layout, rank, counts, intervals, n, owners, status)
      type(fsdp_layout), intent(in) :: layout
      integer, intent(in) :: rank
      integer(c_size_t), intent(in) :: counts(:)
      type(fsdp_interval), intent(inout) :: intervals(:)
      integer, intent(out) :: n
      integer(c_int), intent(in), optional, target, contiguous :: owners(:)
      integer, intent(out), optional :: status
      type(c_ptr) :: given
      integer(c_size_t) :: found
      integer(c_int) :: code

      n = 0
      if (size(intervals) < size(counts)) then
         call refuse('`intervals` needs an element for each tensor', 'fsdp_layout_intervals', status=status)
         return
      end if
      given = c_null_ptr
      if (present(owners)) given = c_loc(owners)
      code = c_layout_intervals(layout, rank, size(counts, kind=c_size_t), counts, given, intervals, found)
      if (code == FSDP_OK) n = int(found)
      call finish(code, 'fsdp_layout_intervals', status=status)
   end subroutine

   ! `shape` in either order of dimensions, unless `matrix` is true: then C's, the first extent that of rows.
   pure real(c_double) function fsdp_tensor_cost(shape, matrix)
      integer(c_size_t), intent(in) :: shape(:)
      logical, intent(in) :: matrix

      fsdp_tensor_cost = c_tensor_cost(size(shape, kind=c_size_t), shape, flag(matrix))
   end function

   subroutine fsdp_deal_tensors(costs, size, owners, status)
      real(c_double), intent(in) :: costs(:)
      integer, intent(in) :: size
      integer(c_int), intent(inout) :: owners(:)
      integer, intent(out), optional :: status

      if (ubound(owners, 1) < ubound(costs, 1)) then
         call refuse('`owners` needs an element for each tensor', 'fsdp_deal_tensors', status=status)
      else
         call finish(c_deal_tensors(ubound(costs, 1, kind=c_size_t), costs, size, owners), 'fsdp_deal_tensors', &
                     status=status)
      end if
   end subroutine
end module
