! Optimizers, loss scalers, L-BFGS and learning rates: fsdp/optimizer.h, fsdp/loss_scaler.h, fsdp/lbfgs.h,
! fsdp/lr_schedule.h.
module fsdp_optimizers
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_models
   implicit none
   private

   public :: fsdp_lbfgs_budget, fsdp_lbfgs_create, fsdp_lbfgs_destroy, fsdp_lbfgs_options_init
   public :: fsdp_lbfgs_options_init_size, fsdp_lbfgs_reset, fsdp_lbfgs_step, fsdp_loss_scaler_create
   public :: fsdp_loss_scaler_destroy, fsdp_loss_scaler_get_state, fsdp_loss_scaler_options_init
   public :: fsdp_loss_scaler_options_init_size, fsdp_loss_scaler_scale, fsdp_loss_scaler_set_state
   public :: fsdp_loss_scaler_step, fsdp_loss_scaler_unscale, fsdp_lr_at, fsdp_lr_schedule_check
   public :: fsdp_optimizer_add_group, fsdp_optimizer_create, fsdp_optimizer_destroy, fsdp_optimizer_group_init
   public :: fsdp_optimizer_group_init_size, fsdp_optimizer_options_init, fsdp_optimizer_options_init_size
   public :: fsdp_optimizer_reset, fsdp_optimizer_set_group_lr, fsdp_optimizer_set_lr, fsdp_optimizer_step
   public :: fsdp_optimizer_steps
   public :: moment_dtype_of

   type, extends(any_handle), public :: fsdp_optimizer
      private
      integer(c_int) :: moment_dtype = FSDP_F32
   end type

   type, extends(any_handle), public :: fsdp_loss_scaler
   end type

   type, extends(any_handle), public :: fsdp_lbfgs
   end type

   interface fsdp_lr_at
      module procedure lr_at, lr_at_long
   end interface

   interface
      subroutine c_optimizer_group_init_size(options, size) bind(C, name="fsdp_optimizer_group_init_size")
         import :: c_size_t, fsdp_optimizer_group
         type(fsdp_optimizer_group), intent(out) :: options
         integer(c_size_t), value                :: size
      end subroutine

      integer(c_int) function c_optimizer_options_init_size(kind, options, size&
            ) bind(C, name="fsdp_optimizer_options_init_size")
         import :: c_int, c_size_t, fsdp_optimizer_options
         integer(c_int), value                     :: kind
         type(fsdp_optimizer_options), intent(out) :: options
         integer(c_size_t), value                  :: size
      end function

      integer(c_int) function c_optimizer_create(model, options, optimizer) bind(C, name="fsdp_optimizer_create")
         import :: c_int, c_ptr, fsdp_optimizer_options
         type(c_ptr), value                       :: model
         type(fsdp_optimizer_options), intent(in) :: options
         type(c_ptr), intent(out)                 :: optimizer
      end function

      integer(c_int) function c_optimizer_reset(optimizer) bind(C, name="fsdp_optimizer_reset")
         import :: c_int, c_ptr
         type(c_ptr), value :: optimizer
      end function

      subroutine c_optimizer_destroy(optimizer) bind(C, name="fsdp_optimizer_destroy")
         import :: c_ptr
         type(c_ptr), value :: optimizer
      end subroutine

      integer(c_int) function c_optimizer_add_group(optimizer, pattern, group) bind(C, name="fsdp_optimizer_add_group")
         import :: c_char, c_int, c_ptr, fsdp_optimizer_group
         type(c_ptr), value                     :: optimizer
         character(kind=c_char), intent(in)     :: pattern(*)
         type(fsdp_optimizer_group), intent(in) :: group
      end function

      integer(c_int) function c_optimizer_step(optimizer) bind(C, name="fsdp_optimizer_step")
         import :: c_int, c_ptr
         type(c_ptr), value :: optimizer
      end function

      integer(c_int) function c_optimizer_set_lr(optimizer, lr) bind(C, name="fsdp_optimizer_set_lr")
         import :: c_double, c_int, c_ptr
         type(c_ptr), value    :: optimizer
         real(c_double), value :: lr
      end function

      integer(c_int) function c_optimizer_set_group_lr(optimizer, pattern, lr&
            ) bind(C, name="fsdp_optimizer_set_group_lr")
         import :: c_char, c_double, c_int, c_ptr
         type(c_ptr), value                 :: optimizer
         character(kind=c_char), intent(in) :: pattern(*)
         real(c_double), value              :: lr
      end function

      integer(c_size_t) function c_optimizer_steps(optimizer) bind(C, name="fsdp_optimizer_steps")
         import :: c_ptr, c_size_t
         type(c_ptr), value :: optimizer
      end function

      subroutine c_lbfgs_options_init_size(options, size) bind(C, name="fsdp_lbfgs_options_init_size")
         import :: c_size_t, fsdp_lbfgs_options
         type(fsdp_lbfgs_options), intent(out) :: options
         integer(c_size_t), value              :: size
      end subroutine

      integer(c_int) function c_lbfgs_create(model, options, lbfgs) bind(C, name="fsdp_lbfgs_create")
         import :: c_int, c_ptr, fsdp_lbfgs_options
         type(c_ptr), value                   :: model
         type(fsdp_lbfgs_options), intent(in) :: options
         type(c_ptr), intent(out)             :: lbfgs
      end function

      integer(c_int) function c_lbfgs_step(lbfgs, closure, state, result) bind(C, name="fsdp_lbfgs_step")
         import :: c_funptr, c_int, c_ptr, fsdp_lbfgs_result
         type(c_ptr), value                   :: lbfgs, state
         type(c_funptr), value                :: closure
         type(fsdp_lbfgs_result), intent(out) :: result
      end function

      subroutine c_lbfgs_reset(lbfgs) bind(C, name="fsdp_lbfgs_reset")
         import :: c_ptr
         type(c_ptr), value :: lbfgs
      end subroutine

      subroutine c_lbfgs_destroy(lbfgs) bind(C, name="fsdp_lbfgs_destroy")
         import :: c_ptr
         type(c_ptr), value :: lbfgs
      end subroutine

      integer(c_int) function c_lbfgs_budget(model, options, budget) bind(C, name="fsdp_lbfgs_budget")
         import :: c_int, c_ptr, fsdp_budget, fsdp_lbfgs_options
         type(c_ptr), value                   :: model
         type(fsdp_lbfgs_options), intent(in) :: options
         type(fsdp_budget), intent(inout)     :: budget
      end function

      subroutine c_loss_scaler_options_init_size(options, size) bind(C, name="fsdp_loss_scaler_options_init_size")
         import :: c_size_t, fsdp_loss_scaler_options
         type(fsdp_loss_scaler_options), intent(out) :: options
         integer(c_size_t), value                    :: size
      end subroutine

      integer(c_int) function c_loss_scaler_create(model, options, scaler) bind(C, name="fsdp_loss_scaler_create")
         import :: c_int, c_ptr, fsdp_loss_scaler_options
         type(c_ptr), value                         :: model
         type(fsdp_loss_scaler_options), intent(in) :: options
         type(c_ptr), intent(out)                   :: scaler
      end function

      subroutine c_loss_scaler_destroy(scaler) bind(C, name="fsdp_loss_scaler_destroy")
         import :: c_ptr
         type(c_ptr), value :: scaler
      end subroutine

      real(c_double) function c_loss_scaler_scale(scaler) bind(C, name="fsdp_loss_scaler_scale")
         import :: c_double, c_ptr
         type(c_ptr), value :: scaler
      end function

      integer(c_int) function c_loss_scaler_unscale(scaler, finite) bind(C, name="fsdp_loss_scaler_unscale")
         import :: c_int, c_ptr
         type(c_ptr), value          :: scaler
         integer(c_int), intent(out) :: finite
      end function

      integer(c_int) function c_loss_scaler_step(scaler, optimizer, stepped) bind(C, name="fsdp_loss_scaler_step")
         import :: c_int, c_ptr
         type(c_ptr), value          :: scaler, optimizer
         integer(c_int), intent(out) :: stepped
      end function

      integer(c_int) function c_loss_scaler_get_state(scaler, state) bind(C, name="fsdp_loss_scaler_get_state")
         import :: c_int, c_ptr, fsdp_loss_scaler_state
         type(c_ptr), value                        :: scaler
         type(fsdp_loss_scaler_state), intent(out) :: state
      end function

      integer(c_int) function c_loss_scaler_set_state(scaler, state) bind(C, name="fsdp_loss_scaler_set_state")
         import :: c_int, c_ptr, fsdp_loss_scaler_state
         type(c_ptr), value                       :: scaler
         type(fsdp_loss_scaler_state), intent(in) :: state
      end function

      integer(c_int) function c_lr_schedule_check(schedule) bind(C, name="fsdp_lr_schedule_check")
         import :: c_int, fsdp_lr_schedule
         type(fsdp_lr_schedule), intent(in) :: schedule
      end function

      pure real(c_double) function c_lr_at(schedule, step) bind(C, name="fsdp_lr_at")
         import :: c_double, c_size_t, fsdp_lr_schedule
         type(fsdp_lr_schedule), intent(in) :: schedule
         integer(c_size_t), value           :: step
      end function
   end interface

contains

   ! ---- optimizers

   subroutine fsdp_optimizer_options_init(kind, options, status)
      integer, intent(in) :: kind
      type(fsdp_optimizer_options), intent(out) :: options
      integer, intent(out), optional :: status

      call fsdp_optimizer_options_init_size(kind, options, c_sizeof(options), status)
   end subroutine

   subroutine fsdp_optimizer_options_init_size(kind, options, size, status)
      integer, intent(in) :: kind
      type(fsdp_optimizer_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size
      integer, intent(out), optional :: status

      call finish(c_optimizer_options_init_size(kind, options, size), 'fsdp_optimizer_options_init', status=status)
   end subroutine

   subroutine fsdp_optimizer_group_init(options)
      type(fsdp_optimizer_group), intent(out) :: options

      call c_optimizer_group_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_optimizer_group_init_size(options, size)
      type(fsdp_optimizer_group), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_optimizer_group_init_size(options, size)
   end subroutine

   ! AdamW, unless `options` or `kind` say otherwise. Single options may be given by their names, in place of `options`
   ! or on top of them; `update`, `update_state` and `n_states` are those of FSDP_CUSTOM, which they stand for.
   subroutine fsdp_optimizer_create(model, optimizer, options, kind, lr, weight_decay, beta1, beta2, eps, momentum, &
                                    nesterov, moment_dtype, group, n_states, update, update_state, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_optimizer), intent(out) :: optimizer
      type(fsdp_optimizer_options), intent(in), optional :: options
      integer, intent(in), optional :: kind, moment_dtype, n_states
      real(c_double), intent(in), optional :: lr, weight_decay, beta1, beta2, eps, momentum
      logical, intent(in), optional :: nesterov
      character(*), intent(in), optional :: group
      procedure(fsdp_update_function), optional :: update
      type(c_ptr), intent(in), optional :: update_state
      integer, intent(out), optional :: status
      type(fsdp_optimizer_options) :: chosen
      character(kind=c_char, len=:), allocatable, target :: pattern
      type(c_ptr) :: created
      integer(c_int) :: code, what

      what = FSDP_ADAMW
      if (present(update)) what = FSDP_CUSTOM
      if (present(kind)) what = kind
      code = FSDP_OK
      if (present(options)) then
         chosen = options
      else
         code = c_optimizer_options_init_size(what, chosen, c_sizeof(chosen))
      end if
      if (present(kind)) chosen%kind = kind
      if (present(lr)) chosen%lr = lr
      if (present(weight_decay)) chosen%weight_decay = weight_decay
      if (present(beta1)) chosen%beta1 = beta1
      if (present(beta2)) chosen%beta2 = beta2
      if (present(eps)) chosen%eps = eps
      if (present(momentum)) chosen%momentum = momentum
      if (present(nesterov)) chosen%nesterov = flag(nesterov)
      if (present(moment_dtype)) chosen%moment_dtype = moment_dtype
      if (present(n_states)) chosen%n_states = int(n_states, c_size_t)
      if (present(update)) chosen%update = c_funloc(update)
      if (present(update_state)) chosen%update_state = update_state
      if (present(group)) then
         pattern = c_text(group)
         chosen%group = c_loc(pattern)
      end if

      created = c_null_ptr
      code = c_optimizer_create(address(model), chosen, created) ! an unknown kind is refused here, on every rank
      if (code /= FSDP_OK) created = c_null_ptr
      call set_handle(optimizer, created, model)
      optimizer%moment_dtype = chosen%moment_dtype
      call finish(code, 'fsdp_optimizer_create', model, status)
   end subroutine

   integer(c_int) function moment_dtype_of(optimizer)
      type(fsdp_optimizer), intent(in) :: optimizer

      moment_dtype_of = optimizer%moment_dtype
   end function

   subroutine fsdp_optimizer_reset(optimizer, status)
      type(fsdp_optimizer), intent(in) :: optimizer
      integer, intent(out), optional :: status

      call finish(c_optimizer_reset(address(optimizer)), 'fsdp_optimizer_reset', optimizer, status)
   end subroutine

   subroutine fsdp_optimizer_destroy(optimizer)
      type(fsdp_optimizer), intent(inout) :: optimizer

      call c_optimizer_destroy(address(optimizer))
      call set_handle(optimizer, c_null_ptr, optimizer)
   end subroutine

   ! What is not given is inherited from the optimizer; or from `group`, the struct of C.
   subroutine fsdp_optimizer_add_group(optimizer, pattern, group, lr, lr_scale, weight_decay, status)
      type(fsdp_optimizer), intent(in) :: optimizer
      character(*), intent(in) :: pattern
      type(fsdp_optimizer_group), intent(in), optional :: group
      real(c_double), intent(in), optional :: lr, lr_scale, weight_decay
      integer, intent(out), optional :: status
      type(fsdp_optimizer_group) :: chosen

      if (present(group)) then
         chosen = group
      else
         call fsdp_optimizer_group_init(chosen)
      end if
      if (present(lr)) chosen%lr = lr
      if (present(lr_scale)) chosen%lr_scale = lr_scale
      if (present(weight_decay)) chosen%weight_decay = weight_decay
      call finish(c_optimizer_add_group(address(optimizer), c_text(pattern), chosen), 'fsdp_optimizer_add_group', &
                  optimizer, status)
   end subroutine

   subroutine fsdp_optimizer_step(optimizer, status)
      type(fsdp_optimizer), intent(in) :: optimizer
      integer, intent(out), optional :: status

      call finish(c_optimizer_step(address(optimizer)), 'fsdp_optimizer_step', optimizer, status)
   end subroutine

   subroutine fsdp_optimizer_set_lr(optimizer, lr, status)
      type(fsdp_optimizer), intent(in) :: optimizer
      real(c_double), intent(in) :: lr
      integer, intent(out), optional :: status

      call finish(c_optimizer_set_lr(address(optimizer), lr), 'fsdp_optimizer_set_lr', optimizer, status)
   end subroutine

   subroutine fsdp_optimizer_set_group_lr(optimizer, pattern, lr, status)
      type(fsdp_optimizer), intent(in) :: optimizer
      character(*), intent(in) :: pattern
      real(c_double), intent(in) :: lr
      integer, intent(out), optional :: status

      call finish(c_optimizer_set_group_lr(address(optimizer), c_text(pattern), lr), 'fsdp_optimizer_set_group_lr', &
                  optimizer, status)
   end subroutine

   integer(c_size_t) function fsdp_optimizer_steps(optimizer)
      type(fsdp_optimizer), intent(in) :: optimizer

      fsdp_optimizer_steps = c_optimizer_steps(address(optimizer))
   end function

   ! ---- loss scalers

   subroutine fsdp_loss_scaler_options_init(options)
      type(fsdp_loss_scaler_options), intent(out) :: options

      call c_loss_scaler_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_loss_scaler_options_init_size(options, size)
      type(fsdp_loss_scaler_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_loss_scaler_options_init_size(options, size)
   end subroutine

   subroutine fsdp_loss_scaler_create(model, scaler, options, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_loss_scaler), intent(out) :: scaler
      type(fsdp_loss_scaler_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(fsdp_loss_scaler_options) :: chosen
      type(c_ptr) :: created
      integer(c_int) :: code

      if (present(options)) then
         chosen = options
      else
         call fsdp_loss_scaler_options_init(chosen)
      end if
      created = c_null_ptr
      code = c_loss_scaler_create(address(model), chosen, created)
      if (code /= FSDP_OK) created = c_null_ptr
      call set_handle(scaler, created, model)
      call finish(code, 'fsdp_loss_scaler_create', model, status)
   end subroutine

   subroutine fsdp_loss_scaler_destroy(scaler)
      type(fsdp_loss_scaler), intent(inout) :: scaler

      call c_loss_scaler_destroy(address(scaler))
      call set_handle(scaler, c_null_ptr, scaler)
   end subroutine

   real(c_double) function fsdp_loss_scaler_scale(scaler)
      type(fsdp_loss_scaler), intent(in) :: scaler

      fsdp_loss_scaler_scale = c_loss_scaler_scale(address(scaler))
   end function

   subroutine fsdp_loss_scaler_unscale(scaler, finite, status)
      type(fsdp_loss_scaler), intent(in) :: scaler
      logical, intent(out), optional :: finite
      integer, intent(out), optional :: status
      integer(c_int) :: code, found

      found = 0
      code = c_loss_scaler_unscale(address(scaler), found)
      if (present(finite)) finite = found /= 0
      call finish(code, 'fsdp_loss_scaler_unscale', scaler, status)
   end subroutine

   subroutine fsdp_loss_scaler_step(scaler, optimizer, stepped, status)
      type(fsdp_loss_scaler), intent(in) :: scaler
      type(fsdp_optimizer), intent(in) :: optimizer
      logical, intent(out), optional :: stepped
      integer, intent(out), optional :: status
      integer(c_int) :: code, found

      found = 0
      code = c_loss_scaler_step(address(scaler), address(optimizer), found)
      if (present(stepped)) stepped = found /= 0
      call finish(code, 'fsdp_loss_scaler_step', scaler, status)
   end subroutine

   subroutine fsdp_loss_scaler_get_state(scaler, state, status)
      type(fsdp_loss_scaler), intent(in) :: scaler
      type(fsdp_loss_scaler_state), intent(out) :: state
      integer, intent(out), optional :: status

      call finish(c_loss_scaler_get_state(address(scaler), state), 'fsdp_loss_scaler_get_state', scaler, status)
   end subroutine

   subroutine fsdp_loss_scaler_set_state(scaler, state, status)
      type(fsdp_loss_scaler), intent(in) :: scaler
      type(fsdp_loss_scaler_state), intent(in) :: state
      integer, intent(out), optional :: status

      call finish(c_loss_scaler_set_state(address(scaler), state), 'fsdp_loss_scaler_set_state', scaler, status)
   end subroutine

   ! ---- L-BFGS

   subroutine fsdp_lbfgs_options_init(options)
      type(fsdp_lbfgs_options), intent(out) :: options

      call c_lbfgs_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_lbfgs_options_init_size(options, size)
      type(fsdp_lbfgs_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_lbfgs_options_init_size(options, size)
   end subroutine

   function lbfgs_options_or_default(options) result(chosen)
      type(fsdp_lbfgs_options), intent(in), optional :: options
      type(fsdp_lbfgs_options) :: chosen

      if (present(options)) then
         chosen = options
      else
         call fsdp_lbfgs_options_init(chosen)
      end if
   end function

   subroutine fsdp_lbfgs_create(model, lbfgs, options, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_lbfgs), intent(out) :: lbfgs
      type(fsdp_lbfgs_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(c_ptr) :: created
      integer(c_int) :: code

      created = c_null_ptr
      code = c_lbfgs_create(address(model), lbfgs_options_or_default(options), created)
      if (code /= FSDP_OK) created = c_null_ptr
      call set_handle(lbfgs, created, model)
      call finish(code, 'fsdp_lbfgs_create', model, status)
   end subroutine

   subroutine fsdp_lbfgs_step(lbfgs, closure, state, result, status)
      type(fsdp_lbfgs), intent(in) :: lbfgs
      procedure(fsdp_lbfgs_closure) :: closure
      type(c_ptr), intent(in), optional :: state
      type(fsdp_lbfgs_result), intent(inout), optional :: result
      integer, intent(out), optional :: status
      type(fsdp_lbfgs_result) :: found
      type(c_ptr) :: handed
      integer(c_int) :: code

      handed = c_null_ptr
      if (present(state)) handed = state
      code = c_lbfgs_step(address(lbfgs), c_funloc(closure), handed, found)
      if (present(result) .and. code == FSDP_OK) result = found
      call finish(code, 'fsdp_lbfgs_step', lbfgs, status)
   end subroutine

   subroutine fsdp_lbfgs_reset(lbfgs)
      type(fsdp_lbfgs), intent(in) :: lbfgs

      call c_lbfgs_reset(address(lbfgs))
   end subroutine

   subroutine fsdp_lbfgs_destroy(lbfgs)
      type(fsdp_lbfgs), intent(inout) :: lbfgs

      call c_lbfgs_destroy(address(lbfgs))
      call set_handle(lbfgs, c_null_ptr, lbfgs)
   end subroutine

   subroutine fsdp_lbfgs_budget(model, budget, options, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_budget), intent(inout) :: budget
      type(fsdp_lbfgs_options), intent(in), optional :: options
      integer, intent(out), optional :: status

      call finish(c_lbfgs_budget(address(model), lbfgs_options_or_default(options), budget), 'fsdp_lbfgs_budget', &
                  model, status)
   end subroutine

   ! ---- learning rates

   subroutine fsdp_lr_schedule_check(schedule, status)
      type(fsdp_lr_schedule), intent(in) :: schedule
      integer, intent(out), optional :: status

      call finish(c_lr_schedule_check(schedule), 'fsdp_lr_schedule_check', status=status)
   end subroutine

   ! `step` counts from 0.
   pure real(c_double) function lr_at(schedule, step)
      type(fsdp_lr_schedule), intent(in) :: schedule
      integer, intent(in) :: step

      lr_at = c_lr_at(schedule, int(step, c_size_t))
   end function

   pure real(c_double) function lr_at_long(schedule, step)
      type(fsdp_lr_schedule), intent(in) :: schedule
      integer(c_size_t), intent(in) :: step

      lr_at_long = c_lr_at(schedule, step)
   end function
end module
