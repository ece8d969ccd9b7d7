! Models and units: made, described, budgeted and released; fsdp/model.h but for its passes, and fsdp/grouping.h.
!
! A model remembers the shapes and types of its tensors, from which views.f90 makes arrays. Shapes here are Fortran's:
! the first extent is that of the dimension whose elements follow each other in memory, C's last one.
module fsdp_models
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   implicit none
   private

   public :: fsdp_group_by_name, fsdp_group_by_size, fsdp_model_add_group, fsdp_model_budget, fsdp_model_commit
   public :: fsdp_model_create, fsdp_model_destroy, fsdp_model_group_init, fsdp_model_group_init_size
   public :: fsdp_model_options_init, fsdp_model_options_init_size, fsdp_model_strategy, fsdp_model_unit
   public :: fsdp_strategy_name, fsdp_strategy_parse, fsdp_tensor_spec, fsdp_unit_add, fsdp_unit_name, fsdp_unit_set_place
   public :: fsdp_unit_set_strategy, fsdp_unit_shape, fsdp_unit_tensor, fsdp_units_add_grouped
   public :: described_tensor, find_tensor, masters_dtype

   integer, parameter :: NAME_LENGTH = 256 ! one more than the library takes, so that it sees what is too long

   ! One tensor of a unit, as fsdp_tensor says it to C. Made by the function of the same name.
   type, public :: fsdp_tensor_spec
      character(NAME_LENGTH) :: name = ''
      integer                :: n_dims = 0
      integer(c_size_t)      :: shape(FSDP_MAX_DIMS) = 0 ! Fortran's
      integer(c_int)         :: dtype = 0                ! 0: the model's own
      integer(c_int)         :: fill = FSDP_FILL_CONSTANT
      real(c_double)         :: a = 0, b = 0
      integer(c_int)         :: flags = 0
      character(NAME_LENGTH) :: tied_to = ''
      type(c_funptr)         :: fill_values = c_null_funptr
      type(c_ptr)            :: fill_state = c_null_ptr
      integer                :: tp_dim = 0    ! Fortran's, from 1, over which it is divided; 0: it is not
      integer                :: tp_blocks = 0
   end type

   interface fsdp_tensor_spec
      module procedure spec, spec_of_long_shape
   end interface

   ! What is known of a tensor.
   type :: described_tensor
      character(:), allocatable :: name
      integer                   :: n_dims = 0
      integer(c_size_t)         :: shape(FSDP_MAX_DIMS) = 0 ! Fortran's
      integer(c_int)            :: param_dtype = 0          ! of its gathered values, or of an ignored tensor
      integer(c_int)            :: grad_dtype = 0
   end type

   type :: described_unit
      type(c_ptr)                         :: c = c_null_ptr
      type(described_tensor), allocatable :: tensors(:)
      type(described_unit), pointer       :: next => null()
   end type

   type :: description
      integer(c_int)                :: param_dtype = 0, reduce_dtype = 0, buffer_dtype = 0
      type(described_unit), pointer :: units => null()
   end type

   type, extends(any_handle), public :: fsdp_model
      private
      type(description), pointer :: description => null()
   end type

   type, extends(any_handle), public :: fsdp_unit
      private
      type(described_unit), pointer :: description => null()
      integer(c_int)                :: masters_dtype = FSDP_F32
   end type

   interface fsdp_unit_add
      module procedure add_unit, add_unit_of_structs
   end interface
   interface fsdp_units_add_grouped
      module procedure add_units, add_units_of_structs
   end interface
   interface fsdp_group_by_size
      module procedure group_by_size, group_structs_by_size
   end interface
   interface fsdp_group_by_name
      module procedure group_by_name, group_structs_by_name
   end interface

   interface
      subroutine c_model_options_init_size(options, size) bind(C, name="fsdp_model_options_init_size")
         import :: c_size_t, fsdp_model_options
         type(fsdp_model_options), intent(out) :: options
         integer(c_size_t), value              :: size
      end subroutine

      subroutine c_model_group_init_size(options, size) bind(C, name="fsdp_model_group_init_size")
         import :: c_size_t, fsdp_model_group
         type(fsdp_model_group), intent(out) :: options
         integer(c_size_t), value            :: size
      end subroutine

      type(c_ptr) function c_strategy_name(strategy) bind(C, name="fsdp_strategy_name")
         import :: c_int, c_ptr
         integer(c_int), value :: strategy
      end function

      integer(c_int) function c_strategy_parse(name, strategy) bind(C, name="fsdp_strategy_parse")
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), intent(out)        :: strategy
      end function

      integer(c_int) function c_model_create(ctx, options, model) bind(C, name="fsdp_model_create")
         import :: c_int, c_ptr, fsdp_model_options
         type(c_ptr), value                   :: ctx
         type(fsdp_model_options), intent(in) :: options
         type(c_ptr), intent(out)             :: model
      end function

      integer(c_int) function c_model_strategy(model, strategy, group_size) bind(C, name="fsdp_model_strategy")
         import :: c_int, c_ptr
         type(c_ptr), value            :: model
         integer(c_int), intent(inout) :: strategy, group_size
      end function

      integer(c_int) function c_unit_add(model, name, tensors, n_tensors, unit) bind(C, name="fsdp_unit_add")
         import :: c_char, c_int, c_ptr, c_size_t, fsdp_tensor
         type(c_ptr), value                 :: model
         character(kind=c_char), intent(in) :: name(*)
         type(fsdp_tensor), intent(in)      :: tensors(*)
         integer(c_size_t), value           :: n_tensors
         type(c_ptr), intent(out)           :: unit
      end function

      integer(c_int) function c_unit_set_place(unit, place) bind(C, name="fsdp_unit_set_place")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: unit
         integer(c_size_t), value :: place
      end function

      integer(c_size_t) function c_unit_shape(unit, i, shape) bind(C, name="fsdp_unit_shape")
         import :: c_ptr, c_size_t
         type(c_ptr), value               :: unit
         integer(c_size_t), value         :: i
         integer(c_size_t), intent(inout) :: shape(*)
      end function

      integer(c_int) function c_unit_set_strategy(unit, strategy) bind(C, name="fsdp_unit_set_strategy")
         import :: c_int, c_ptr
         type(c_ptr), value    :: unit
         integer(c_int), value :: strategy
      end function

      integer(c_int) function c_model_add_group(model, pattern, group) bind(C, name="fsdp_model_add_group")
         import :: c_char, c_int, c_ptr, fsdp_model_group
         type(c_ptr), value                 :: model
         character(kind=c_char), intent(in) :: pattern(*)
         type(fsdp_model_group), intent(in) :: group
      end function

      integer(c_int) function c_model_commit(model) bind(C, name="fsdp_model_commit")
         import :: c_int, c_ptr
         type(c_ptr), value :: model
      end function

      subroutine c_model_destroy(model) bind(C, name="fsdp_model_destroy")
         import :: c_ptr
         type(c_ptr), value :: model
      end subroutine

      integer(c_int) function c_model_budget(model, strategy, size, optimizer, budget) bind(C, name="fsdp_model_budget")
         import :: c_int, c_ptr, fsdp_budget
         type(c_ptr), value               :: model
         integer(c_int), value            :: strategy, size, optimizer
         type(fsdp_budget), intent(inout) :: budget
      end function

      type(c_ptr) function c_model_unit(model, name) bind(C, name="fsdp_model_unit")
         import :: c_char, c_ptr
         type(c_ptr), value                 :: model
         character(kind=c_char), intent(in) :: name(*)
      end function

      integer(c_size_t) function c_unit_tensor(unit, name) bind(C, name="fsdp_unit_tensor")
         import :: c_char, c_ptr, c_size_t
         type(c_ptr), value                 :: unit
         character(kind=c_char), intent(in) :: name(*)
      end function

      type(c_ptr) function c_unit_name(unit) bind(C, name="fsdp_unit_name")
         import :: c_ptr
         type(c_ptr), value :: unit
      end function

      integer(c_int) function c_group_by_size(tensors, n, min_elements, first, n_groups&
            ) bind(C, name="fsdp_group_by_size")
         import :: c_int, c_size_t, fsdp_tensor
         type(fsdp_tensor), intent(in)  :: tensors(*)
         integer(c_size_t), value       :: n, min_elements
         integer(c_size_t), intent(out) :: first(*), n_groups
      end function

      integer(c_int) function c_group_by_name(tensors, n, pattern, first, n_groups) bind(C, name="fsdp_group_by_name")
         import :: c_char, c_int, c_size_t, fsdp_tensor
         type(fsdp_tensor), intent(in)      :: tensors(*)
         integer(c_size_t), value           :: n
         character(kind=c_char), intent(in) :: pattern(*)
         integer(c_size_t), intent(out)     :: first(*), n_groups
      end function

      integer(c_int) function c_units_add_grouped(model, tensors, n, first, n_groups, units&
            ) bind(C, name="fsdp_units_add_grouped")
         import :: c_int, c_ptr, c_size_t, fsdp_tensor
         type(c_ptr), value            :: model
         type(fsdp_tensor), intent(in) :: tensors(*)
         integer(c_size_t), value      :: n, n_groups
         integer(c_size_t), intent(in) :: first(*)
         type(c_ptr), intent(out)      :: units(*)
      end function
   end interface

contains

   ! ---- options

   subroutine fsdp_model_options_init(options)
      type(fsdp_model_options), intent(out) :: options

      call c_model_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_model_options_init_size(options, size)
      type(fsdp_model_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_model_options_init_size(options, size)
   end subroutine

   subroutine fsdp_model_group_init(options)
      type(fsdp_model_group), intent(out) :: options

      call c_model_group_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_model_group_init_size(options, size)
      type(fsdp_model_group), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_model_group_init_size(options, size)
   end subroutine

   function fsdp_strategy_name(strategy) result(text)
      integer, intent(in) :: strategy
      character(:), allocatable :: text

      text = fsdp_string(c_strategy_name(strategy))
   end function

   subroutine fsdp_strategy_parse(name, strategy, status)
      character(*), intent(in) :: name
      integer, intent(inout) :: strategy
      integer, intent(out), optional :: status

      call finish(c_strategy_parse(c_text(name), strategy), 'fsdp_strategy_parse', status=status)
   end subroutine

   ! ---- models

   ! Single options may be given by their names, in place of `options` or on top of them.
   ! `mesh`: an fsdp_mesh, with the names of its axes, in place of what the options say.
   subroutine fsdp_model_create(ctx, model, options, strategy, seed, memory_limit, param_dtype, reduce_dtype, &
                                moment_dtype, optimizer, group_size, local_gradients, unused, mesh, tensor_axis, &
                                stage_axis, axis_strategies, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_model), intent(out) :: model
      type(fsdp_model_options), intent(in), optional :: options
      integer, intent(in), optional :: strategy, param_dtype, reduce_dtype, moment_dtype, optimizer, group_size, unused
      integer(c_int64_t), intent(in), optional :: seed
      integer(c_size_t), intent(in), optional :: memory_limit
      logical, intent(in), optional :: local_gradients
      class(any_handle), intent(in), optional :: mesh
      character(*), intent(in), optional :: tensor_axis, stage_axis, axis_strategies
      integer, intent(out), optional :: status
      character(kind=c_char, len=FSDP_AXIS_NAME_BYTES * FSDP_MAX_AXES), target :: tensor_text, stage_text
      character(kind=c_char, len=:), allocatable, target :: strategies_text
      type(fsdp_model_options) :: chosen
      type(c_ptr) :: created
      integer(c_int) :: code

      if (present(options)) then
         chosen = options
      else
         call fsdp_model_options_init(chosen)
      end if
      if (present(strategy)) chosen%strategy = strategy
      if (present(seed)) chosen%seed = seed
      if (present(memory_limit)) chosen%memory_limit = memory_limit
      if (present(param_dtype)) chosen%param_dtype = param_dtype
      if (present(reduce_dtype)) chosen%reduce_dtype = reduce_dtype
      if (present(moment_dtype)) chosen%moment_dtype = moment_dtype
      if (present(optimizer)) chosen%optimizer = optimizer
      if (present(group_size)) chosen%group_size = group_size
      if (present(local_gradients)) chosen%local_gradients = flag(local_gradients)
      if (present(unused)) chosen%unused = unused
      if (present(mesh)) chosen%mesh = address(mesh)
      if (present(tensor_axis)) then
         tensor_text = c_text(tensor_axis)
         chosen%tensor_axis = c_loc(tensor_text)
      end if
      if (present(stage_axis)) then
         stage_text = c_text(stage_axis)
         chosen%stage_axis = c_loc(stage_text)
      end if
      if (present(axis_strategies)) then
         strategies_text = c_text(axis_strategies)
         chosen%axis_strategies = c_loc(strategies_text)
      end if

      created = c_null_ptr
      code = c_model_create(address(ctx), chosen, created)
      if (code /= FSDP_OK) created = c_null_ptr
      call set_handle(model, created, ctx)
      if (code == FSDP_OK) then
         allocate (model%description)
         model%description%param_dtype = chosen%param_dtype
         model%description%reduce_dtype = chosen%reduce_dtype
         model%description%buffer_dtype = chosen%buffer_dtype
      end if
      call finish(code, 'fsdp_model_create', ctx, status)
   end subroutine

   subroutine fsdp_model_strategy(model, strategy, group_size, status)
      type(fsdp_model), intent(in) :: model
      integer, intent(inout) :: strategy
      integer, intent(inout), optional :: group_size
      integer, intent(out), optional :: status
      integer(c_int) :: ranks, code

      ranks = 0
      code = c_model_strategy(address(model), strategy, ranks)
      if (code == FSDP_OK .and. present(group_size)) group_size = ranks
      call finish(code, 'fsdp_model_strategy', model, status)
   end subroutine

   subroutine fsdp_model_add_group(model, pattern, group, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: pattern
      type(fsdp_model_group), intent(in) :: group
      integer, intent(out), optional :: status

      call finish(c_model_add_group(address(model), c_text(pattern), group), 'fsdp_model_add_group', model, status)
   end subroutine

   subroutine fsdp_model_commit(model, status)
      type(fsdp_model), intent(in) :: model
      integer, intent(out), optional :: status

      call finish(c_model_commit(address(model)), 'fsdp_model_commit', model, status)
   end subroutine

   ! The handle is null afterwards; those of its units, its optimizers and its loss scaler must not be used again.
   subroutine fsdp_model_destroy(model)
      type(fsdp_model), intent(inout) :: model
      type(described_unit), pointer :: unit, next

      call c_model_destroy(address(model))
      if (associated(model%description)) then
         unit => model%description%units
         do while (associated(unit))
            next => unit%next
            deallocate (unit)
            unit => next
         end do
         deallocate (model%description)
      end if
      call set_handle(model, c_null_ptr, model)
   end subroutine

   ! `strategy` and `optimizer` are FULL_SHARD and AdamW, and `size` is that of the context, if they are not given.
   subroutine fsdp_model_budget(model, budget, strategy, size, optimizer, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_budget), intent(inout) :: budget
      integer, intent(in), optional :: strategy, size, optimizer
      integer, intent(out), optional :: status
      integer(c_int) :: what, ranks, kind

      what = FSDP_FULL_SHARD
      ranks = 0
      kind = FSDP_ADAMW
      if (present(strategy)) what = strategy
      if (present(size)) ranks = size
      if (present(optimizer)) kind = optimizer
      call finish(c_model_budget(address(model), what, ranks, kind, budget), 'fsdp_model_budget', model, status)
   end subroutine

   ! ---- units

   ! A tensor without a shape is a scalar. `b` and the others are what fsdp/model.h says of fsdp_tensor.
   ! `tp_dim` is a dimension of Fortran's, from 1, and sets FSDP_TENSOR_TP.
   function spec(name, shape, fill, a, b, flags, dtype, tied_to, fill_values, fill_state, tp_dim, &
                 tp_blocks) result(tensor)
      character(*), intent(in) :: name
      integer, intent(in), optional :: shape(:)
      integer, intent(in), optional :: fill, flags, dtype, tp_dim, tp_blocks
      real(c_double), intent(in), optional :: a, b
      character(*), intent(in), optional :: tied_to
      procedure(fsdp_fill_function), optional :: fill_values
      type(c_ptr), intent(in), optional :: fill_state
      type(fsdp_tensor_spec) :: tensor

      if (present(shape)) then
         tensor = spec_of_long_shape(name, int(shape, c_size_t), fill, a, b, flags, dtype, tied_to, fill_values, &
                                     fill_state, tp_dim, tp_blocks)
      else
         tensor = spec_of_long_shape(name, [integer(c_size_t) ::], fill, a, b, flags, dtype, tied_to, fill_values, &
                                     fill_state, tp_dim, tp_blocks)
      end if
   end function

   function spec_of_long_shape(name, shape, fill, a, b, flags, dtype, tied_to, fill_values, fill_state, tp_dim, &
                               tp_blocks) result(tensor)
      character(*), intent(in) :: name
      integer(c_size_t), intent(in) :: shape(:)
      integer, intent(in), optional :: fill, flags, dtype, tp_dim, tp_blocks
      real(c_double), intent(in), optional :: a, b
      character(*), intent(in), optional :: tied_to
      procedure(fsdp_fill_function), optional :: fill_values
      type(c_ptr), intent(in), optional :: fill_state
      type(fsdp_tensor_spec) :: tensor
      integer :: n

      n = size(shape)
      tensor%name = name
      tensor%n_dims = n ! the library refuses too many
      tensor%shape(:min(n, FSDP_MAX_DIMS)) = shape(:min(n, FSDP_MAX_DIMS))
      if (present(fill)) tensor%fill = fill
      if (present(a)) tensor%a = a
      if (present(b)) tensor%b = b
      if (present(flags)) tensor%flags = flags
      if (present(dtype)) tensor%dtype = dtype
      if (present(tied_to)) tensor%tied_to = tied_to
      if (present(fill_values)) then
         tensor%fill = FSDP_FILL_CALLBACK
         tensor%fill_values = c_funloc(fill_values)
      end if
      if (present(fill_state)) tensor%fill_state = fill_state
      if (present(tp_dim)) tensor%tp_dim = tp_dim
      if (present(tp_blocks)) tensor%tp_blocks = tp_blocks
   end function

   ! `texts` holds what the structs point to, two for each.
   subroutine to_structs(specs, texts, structs)
      type(fsdp_tensor_spec), intent(in) :: specs(:)
      character(kind=c_char, len=NAME_LENGTH + 1), intent(out), target :: texts(:)
      type(fsdp_tensor), intent(out) :: structs(:)
      integer :: i, n

      do i = 1, size(specs)
         n = specs(i)%n_dims
         texts(2 * i - 1) = c_text(specs(i)%name)
         texts(2 * i) = c_text(specs(i)%tied_to)
         structs(i)%name = c_loc(texts(2 * i - 1))
         structs(i)%n_dims = int(n, c_size_t)
         if (n <= FSDP_MAX_DIMS) structs(i)%shape(:n) = specs(i)%shape(n:1:-1)
         structs(i)%dtype = specs(i)%dtype
         structs(i)%fill = specs(i)%fill
         structs(i)%a = specs(i)%a
         structs(i)%b = specs(i)%b
         structs(i)%flags = specs(i)%flags
         if (specs(i)%tied_to /= '') structs(i)%tied_to = c_loc(texts(2 * i))
         structs(i)%fill_values = specs(i)%fill_values
         structs(i)%fill_state = specs(i)%fill_state
         structs(i)%tp_blocks = specs(i)%tp_blocks
         if (specs(i)%tp_dim > 0) then ! one that there is not becomes one that the library refuses
            structs(i)%flags = ior(structs(i)%flags, FSDP_TENSOR_TP)
            structs(i)%tp_dim = merge(n - specs(i)%tp_dim, n, specs(i)%tp_dim <= n)
         end if
      end do
   end subroutine

   subroutine add_unit(model, name, tensors, unit, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      type(fsdp_tensor_spec), intent(in) :: tensors(:)
      type(fsdp_unit), intent(out) :: unit
      integer, intent(out), optional :: status
      character(kind=c_char, len=NAME_LENGTH + 1), target :: texts(2 * size(tensors))
      type(fsdp_tensor) :: structs(size(tensors))

      call to_structs(tensors, texts, structs)
      call add_unit_of_structs(model, name, structs, unit, status)
   end subroutine

   ! As C describes tensors, in C's order of dimensions.
   subroutine add_unit_of_structs(model, name, tensors, unit, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      type(fsdp_tensor), intent(in) :: tensors(:)
      type(fsdp_unit), intent(out) :: unit
      integer, intent(out), optional :: status
      type(c_ptr) :: added
      integer(c_int) :: code

      added = c_null_ptr
      code = c_unit_add(address(model), c_text(name), tensors, size(tensors, kind=c_size_t), added)
      if (code == FSDP_OK) call describe(model, added, tensors)
      if (code == FSDP_OK) call know_unit(model, added, unit)
      call finish(code, 'fsdp_unit_add', model, status)
   end subroutine

   subroutine describe(model, c, tensors)
      type(fsdp_model), intent(in) :: model
      type(c_ptr), intent(in) :: c
      type(fsdp_tensor), intent(in) :: tensors(:)
      type(described_unit), pointer :: unit
      integer(c_size_t) :: shape(FSDP_MAX_DIMS)
      integer :: i, n

      allocate (unit)
      unit%c = c
      allocate (unit%tensors(size(tensors)))
      unit%next => model%description%units
      model%description%units => unit
      do i = 1, size(tensors)
         call describe_tensor(model%description, tensors(i), unit%tensors(i))
         shape = 0
         n = int(c_unit_shape(c, int(i - 1, c_size_t), shape))
         unit%tensors(i)%shape(:n) = shape(n:1:-1) ! this rank's part of it
      end do
   end subroutine

   subroutine describe_tensor(model, struct, tensor)
      type(description), intent(in) :: model
      type(fsdp_tensor), intent(in) :: struct
      type(described_tensor), intent(inout) :: tensor
      integer :: n

      n = int(struct%n_dims)
      tensor%name = fsdp_string(struct%name)
      tensor%n_dims = n
      tensor%grad_dtype = model%reduce_dtype
      if (c_associated(struct%tied_to)) then
         tensor%param_dtype = dtype_of_owner(model, fsdp_string(struct%tied_to))
      else if (struct%dtype == FSDP_BF16 .or. struct%dtype == FSDP_F16) then
         tensor%param_dtype = struct%dtype
      else if (struct%dtype == FSDP_F32 .and. iand(struct%flags, FSDP_TENSOR_KEEP_DTYPE) /= 0) then
         tensor%param_dtype = FSDP_F32
      else if (iand(struct%flags, FSDP_TENSOR_IGNORED) /= 0) then
         tensor%param_dtype = model%buffer_dtype
      else
         tensor%param_dtype = model%param_dtype
      end if
   end subroutine

   integer(c_int) function dtype_of_owner(model, name)
      type(description), intent(in) :: model
      character(*), intent(in) :: name
      type(described_unit), pointer :: unit
      integer :: i

      dtype_of_owner = model%param_dtype
      unit => model%units
      do while (associated(unit))
         do i = 1, size(unit%tensors)
            if (.not. allocated(unit%tensors(i)%name)) exit ! the unit that is being described
            if (unit%tensors(i)%name == name) dtype_of_owner = unit%tensors(i)%param_dtype
         end do
         unit => unit%next
      end do
   end function

   ! Makes the handle of a unit of the model.
   subroutine know_unit(model, c, unit)
      type(fsdp_model), intent(in) :: model
      type(c_ptr), intent(in) :: c
      type(fsdp_unit), intent(inout) :: unit

      call set_handle(unit, c, model)
      if (.not. c_associated(c)) return
      unit%description => model%description%units
      do while (associated(unit%description))
         if (c_associated(unit%description%c, c)) exit
         unit%description => unit%description%next
      end do
      if (model%description%param_dtype == FSDP_F64) unit%masters_dtype = FSDP_F64
   end subroutine

   subroutine fsdp_unit_set_place(unit, place, status)
      type(fsdp_unit), intent(in) :: unit
      integer(c_size_t), intent(in) :: place
      integer, intent(out), optional :: status

      call finish(c_unit_set_place(address(unit), place), 'fsdp_unit_set_place', unit, status)
   end subroutine

   subroutine fsdp_unit_set_strategy(unit, strategy, status)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: strategy
      integer, intent(out), optional :: status

      call finish(c_unit_set_strategy(address(unit), strategy), 'fsdp_unit_set_strategy', unit, status)
   end subroutine

   ! The unit of that name; if there is none, fsdp_is_null() says so of the result, and fsdp_last_error() has the
   ! nearest name.
   function fsdp_model_unit(model, name) result(unit)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      type(fsdp_unit) :: unit

      call know_unit(model, c_model_unit(address(model), c_text(name)), unit)
   end function

   ! The index of a tensor, counted from 1, as fsdp_unit_param() and others take it; or FSDP_NO_TENSOR, which is -1.
   integer function fsdp_unit_tensor(unit, name)
      type(fsdp_unit), intent(in) :: unit
      character(*), intent(in) :: name
      integer(c_size_t) :: found

      found = c_unit_tensor(address(unit), c_text(name))
      if (found /= FSDP_NO_TENSOR) found = found + 1
      fsdp_unit_tensor = int(found)
   end function

   ! Fortran's shape of tensor `i`, counted from 1, as views have it; of no tensor a single FSDP_NO_TENSOR, which is -1.
   function fsdp_unit_shape(unit, i) result(shape)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      integer(c_size_t), allocatable :: shape(:)
      integer(c_size_t) :: room(FSDP_MAX_DIMS), n

      n = c_unit_shape(address(unit), int(i - 1, c_size_t), room)
      if (n == FSDP_NO_TENSOR) then
         shape = [n]
      else
         shape = room(n:1:-1)
      end if
   end function

   function fsdp_unit_name(unit) result(text)
      type(fsdp_unit), intent(in) :: unit
      character(:), allocatable :: text

      text = fsdp_string(c_unit_name(address(unit)))
   end function

   ! What is known of tensor `i`, counted from 1; null if there is none.
   function find_tensor(unit, i) result(tensor)
      type(fsdp_unit), intent(in) :: unit
      integer, intent(in) :: i
      type(described_tensor), pointer :: tensor

      tensor => null()
      if (.not. associated(unit%description)) return
      if (i >= 1 .and. i <= size(unit%description%tensors)) tensor => unit%description%tensors(i)
   end function

   integer(c_int) function masters_dtype(unit)
      type(fsdp_unit), intent(in) :: unit

      masters_dtype = unit%masters_dtype
   end function

   ! ---- groups of tensors. `first` holds C's indices, from 0: group g has those from first(g) + 1 to first(g + 1).

   subroutine group_by_size(tensors, min_elements, first, n_groups, status)
      type(fsdp_tensor_spec), intent(in) :: tensors(:)
      integer(c_size_t), intent(in) :: min_elements
      integer(c_size_t), intent(out) :: first(:)
      integer, intent(out) :: n_groups
      integer, intent(out), optional :: status
      character(kind=c_char, len=NAME_LENGTH + 1), target :: texts(2 * size(tensors))
      type(fsdp_tensor) :: structs(size(tensors))

      call to_structs(tensors, texts, structs)
      call group_structs_by_size(structs, min_elements, first, n_groups, status)
   end subroutine

   subroutine group_structs_by_size(tensors, min_elements, first, n_groups, status)
      type(fsdp_tensor), intent(in) :: tensors(:)
      integer(c_size_t), intent(in) :: min_elements
      integer(c_size_t), intent(out) :: first(:)
      integer, intent(out) :: n_groups
      integer, intent(out), optional :: status
      integer(c_size_t) :: n
      integer(c_int) :: code

      n_groups = 0
      if (size(first) < size(tensors)) then
         call refuse('`first` needs an element for each tensor', 'fsdp_group_by_size', status=status)
         return
      end if
      code = c_group_by_size(tensors, size(tensors, kind=c_size_t), min_elements, first, n)
      if (code == FSDP_OK) n_groups = int(n)
      call finish(code, 'fsdp_group_by_size', status=status)
   end subroutine

   subroutine group_by_name(tensors, pattern, first, n_groups, status)
      type(fsdp_tensor_spec), intent(in) :: tensors(:)
      character(*), intent(in) :: pattern
      integer(c_size_t), intent(out) :: first(:)
      integer, intent(out) :: n_groups
      integer, intent(out), optional :: status
      character(kind=c_char, len=NAME_LENGTH + 1), target :: texts(2 * size(tensors))
      type(fsdp_tensor) :: structs(size(tensors))

      call to_structs(tensors, texts, structs)
      call group_structs_by_name(structs, pattern, first, n_groups, status)
   end subroutine

   subroutine group_structs_by_name(tensors, pattern, first, n_groups, status)
      type(fsdp_tensor), intent(in) :: tensors(:)
      character(*), intent(in) :: pattern
      integer(c_size_t), intent(out) :: first(:)
      integer, intent(out) :: n_groups
      integer, intent(out), optional :: status
      integer(c_size_t) :: n
      integer(c_int) :: code

      n_groups = 0
      if (size(first) < size(tensors)) then
         call refuse('`first` needs an element for each tensor', 'fsdp_group_by_name', status=status)
         return
      end if
      code = c_group_by_name(tensors, size(tensors, kind=c_size_t), c_text(pattern), first, n)
      if (code == FSDP_OK) n_groups = int(n)
      call finish(code, 'fsdp_group_by_name', status=status)
   end subroutine

   ! A unit for each of size(units) groups.
   subroutine add_units(model, tensors, first, units, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_tensor_spec), intent(in) :: tensors(:)
      integer(c_size_t), intent(in) :: first(:)
      type(fsdp_unit), intent(out) :: units(:)
      integer, intent(out), optional :: status
      character(kind=c_char, len=NAME_LENGTH + 1), target :: texts(2 * size(tensors))
      type(fsdp_tensor) :: structs(size(tensors))

      call to_structs(tensors, texts, structs)
      call add_units_of_structs(model, structs, first, units, status)
   end subroutine

   subroutine add_units_of_structs(model, tensors, first, units, status)
      type(fsdp_model), intent(in) :: model
      type(fsdp_tensor), intent(in) :: tensors(:)
      integer(c_size_t), intent(in) :: first(:)
      type(fsdp_unit), intent(out) :: units(:)
      integer, intent(out), optional :: status
      type(c_ptr) :: added(size(units))
      integer(c_size_t) :: from, to
      integer(c_int) :: code
      integer :: g

      if (size(first) < size(units)) then
         call refuse('`first` has fewer elements than there are units', 'fsdp_units_add_grouped', model, status)
         return
      end if
      added = c_null_ptr
      code = c_units_add_grouped(address(model), tensors, size(tensors, kind=c_size_t), first, &
                                 size(units, kind=c_size_t), added)
      do g = 1, size(units)
         if (.not. c_associated(added(g))) exit
         from = first(g) + 1
         to = size(tensors, kind=c_size_t)
         if (g < size(units)) to = first(g + 1)
         call describe(model, added(g), tensors(from:to))
         call know_unit(model, added(g), units(g))
      end do
      call finish(code, 'fsdp_units_add_grouped', model, status)
   end subroutine
end module
