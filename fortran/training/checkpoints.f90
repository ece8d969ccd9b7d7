! Checkpoints, and single tensors moved by hand: fsdp/checkpoint.h, fsdp/tensor_io.h.
module fsdp_checkpoints
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_models
   use fsdp_optimizers
   implicit none
   private

   public :: fsdp_checkpoint_add, fsdp_checkpoint_add_bytes, fsdp_checkpoint_add_model, fsdp_checkpoint_add_rows
   public :: fsdp_checkpoint_budget, fsdp_checkpoint_cache
   public :: fsdp_checkpoint_close, fsdp_checkpoint_get_rows, fsdp_checkpoint_latest, fsdp_checkpoint_load
   public :: fsdp_checkpoint_load_options_init, fsdp_checkpoint_load_options_init_size, fsdp_checkpoint_open
   public :: fsdp_checkpoint_open_folder, fsdp_checkpoint_options_init, fsdp_checkpoint_options_init_size
   public :: fsdp_checkpoint_progress, fsdp_checkpoint_restore, fsdp_checkpoint_save, fsdp_checkpoint_save_async
   public :: fsdp_checkpoint_set_rows, fsdp_checkpoint_wait, fsdp_set_text, fsdp_tensor_export
   public :: fsdp_tensor_export_to_all, fsdp_tensor_import

   type, extends(any_handle), public :: fsdp_checkpoint
   end type

   interface fsdp_checkpoint_add
      module procedure add_address, add_array
   end interface
   interface fsdp_tensor_export
      module procedure export_address, export_f32, export_f64
   end interface
   interface fsdp_tensor_export_to_all
      module procedure export_to_all_address, export_to_all_f32, export_to_all_f64
   end interface
   interface fsdp_tensor_import
      module procedure import_address, import_f32, import_f64
   end interface

   integer(c_int64_t), target :: no_rows(0)

   interface
      subroutine c_checkpoint_options_init_size(options, size) bind(C, name="fsdp_checkpoint_options_init_size")
         import :: c_size_t, fsdp_checkpoint_options
         type(fsdp_checkpoint_options), intent(out) :: options
         integer(c_size_t), value                   :: size
      end subroutine

      subroutine c_checkpoint_load_options_init_size(options, size) &
         bind(C, name="fsdp_checkpoint_load_options_init_size")
         import :: c_size_t, fsdp_checkpoint_load_options
         type(fsdp_checkpoint_load_options), intent(out) :: options
         integer(c_size_t), value                        :: size
      end subroutine

      integer(c_int) function c_checkpoint_open(model, optimizer, folder, options, checkpoint&
            ) bind(C, name="fsdp_checkpoint_open")
         import :: c_char, c_int, c_ptr, fsdp_checkpoint_options
         type(c_ptr), value                        :: model, optimizer
         character(kind=c_char), intent(in)        :: folder(*)
         type(fsdp_checkpoint_options), intent(in) :: options
         type(c_ptr), intent(out)                  :: checkpoint
      end function

      integer(c_int) function c_checkpoint_open_folder(ctx, folder, options, checkpoint&
            ) bind(C, name="fsdp_checkpoint_open_folder")
         import :: c_char, c_int, c_ptr, fsdp_checkpoint_options
         type(c_ptr), value                        :: ctx
         character(kind=c_char), intent(in)        :: folder(*)
         type(fsdp_checkpoint_options), intent(in) :: options
         type(c_ptr), intent(out)                  :: checkpoint
      end function

      integer(c_int) function c_checkpoint_add_model(checkpoint, name, model, optimizer) &
         bind(C, name="fsdp_checkpoint_add_model")
         import :: c_char, c_int, c_ptr
         type(c_ptr), value                 :: checkpoint, model, optimizer
         character(kind=c_char), intent(in) :: name(*)
      end function

      integer(c_int) function c_checkpoint_add(checkpoint, name, dtype, n_dims, shape, box, memory&
            ) bind(C, name="fsdp_checkpoint_add")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: checkpoint, box, memory
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value              :: dtype
         integer(c_size_t), value           :: n_dims
         integer(c_size_t), intent(in)      :: shape(*)
      end function

      integer(c_int) function c_checkpoint_add_bytes(checkpoint, name, bytes, room, n_bytes&
            ) bind(C, name="fsdp_checkpoint_add_bytes")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: checkpoint, bytes, n_bytes
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), value           :: room
      end function

      integer(c_int) function c_checkpoint_add_rows(checkpoint, name, n_columns, columns&
            ) bind(C, name="fsdp_checkpoint_add_rows")
         import :: c_char, c_int, c_ptr, c_size_t, fsdp_column
         type(c_ptr), value                 :: checkpoint
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), value           :: n_columns
         type(fsdp_column), intent(in)      :: columns(*)
      end function

      integer(c_int) function c_checkpoint_set_rows(checkpoint, name, n_rows, ids, columns&
            ) bind(C, name="fsdp_checkpoint_set_rows")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: checkpoint, ids, columns
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), value           :: n_rows
      end function

      integer(c_int) function c_checkpoint_get_rows(checkpoint, name, n_rows, ids, columns&
            ) bind(C, name="fsdp_checkpoint_get_rows")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: checkpoint
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), intent(out)     :: n_rows
         type(c_ptr), intent(out)           :: ids, columns(*)
      end function

      integer(c_int) function c_checkpoint_save(checkpoint, state) bind(C, name="fsdp_checkpoint_save")
         import :: c_int, c_ptr, fsdp_checkpoint_state
         type(c_ptr), value                      :: checkpoint
         type(fsdp_checkpoint_state), intent(in) :: state
      end function

      integer(c_int) function c_checkpoint_save_async(checkpoint, state) bind(C, name="fsdp_checkpoint_save_async")
         import :: c_int, c_ptr, fsdp_checkpoint_state
         type(c_ptr), value                      :: checkpoint
         type(fsdp_checkpoint_state), intent(in) :: state
      end function

      integer(c_int) function c_checkpoint_cache(checkpoint, state) bind(C, name="fsdp_checkpoint_cache")
         import :: c_int, c_ptr, fsdp_checkpoint_state
         type(c_ptr), value                      :: checkpoint
         type(fsdp_checkpoint_state), intent(in) :: state
      end function

      integer(c_int) function c_checkpoint_progress(checkpoint, done) bind(C, name="fsdp_checkpoint_progress")
         import :: c_int, c_ptr
         type(c_ptr), value          :: checkpoint
         integer(c_int), intent(out) :: done
      end function

      integer(c_int) function c_checkpoint_wait(checkpoint) bind(C, name="fsdp_checkpoint_wait")
         import :: c_int, c_ptr
         type(c_ptr), value :: checkpoint
      end function

      integer(c_int) function c_checkpoint_close(checkpoint) bind(C, name="fsdp_checkpoint_close")
         import :: c_int, c_ptr
         type(c_ptr), value :: checkpoint
      end function

      integer(c_int) function c_checkpoint_budget(checkpoint, budget) bind(C, name="fsdp_checkpoint_budget")
         import :: c_int, c_ptr, fsdp_budget
         type(c_ptr), value               :: checkpoint
         type(fsdp_budget), intent(inout) :: budget
      end function

      integer(c_int) function c_checkpoint_latest(ctx, folder, path, size) bind(C, name="fsdp_checkpoint_latest")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                  :: ctx
         character(kind=c_char), intent(in)  :: folder(*)
         character(kind=c_char), intent(out) :: path(*)
         integer(c_size_t), value            :: size
      end function

      integer(c_int) function c_checkpoint_load(model, optimizer, path, options, state&
            ) bind(C, name="fsdp_checkpoint_load")
         import :: c_char, c_int, c_ptr, fsdp_checkpoint_load_options, fsdp_checkpoint_state
         type(c_ptr), value                             :: model, optimizer
         character(kind=c_char), intent(in)             :: path(*)
         type(fsdp_checkpoint_load_options), intent(in) :: options
         type(fsdp_checkpoint_state), intent(out)       :: state
      end function

      integer(c_int) function c_checkpoint_restore(checkpoint, path, options, state&
            ) bind(C, name="fsdp_checkpoint_restore")
         import :: c_char, c_int, c_ptr, fsdp_checkpoint_load_options, fsdp_checkpoint_state
         type(c_ptr), value                             :: checkpoint
         character(kind=c_char), intent(in)             :: path(*)
         type(fsdp_checkpoint_load_options), intent(in) :: options
         type(fsdp_checkpoint_state), intent(out)       :: state
      end function

      integer(c_int) function c_tensor_export(model, name, root, values, bytes) bind(C, name="fsdp_tensor_export")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: model, values
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value              :: root
         integer(c_size_t), value           :: bytes
      end function

      integer(c_int) function c_tensor_export_to_all(model, name, values, bytes&
            ) bind(C, name="fsdp_tensor_export_to_all")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: model, values
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), value           :: bytes
      end function

      integer(c_int) function c_tensor_import(model, name, root, values, bytes) bind(C, name="fsdp_tensor_import")
         import :: c_char, c_int, c_ptr, c_size_t
         type(c_ptr), value                 :: model, values
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value              :: root
         integer(c_size_t), value           :: bytes
      end function
   end interface

contains

   ! ---- options

   subroutine fsdp_checkpoint_options_init(options)
      type(fsdp_checkpoint_options), intent(out) :: options

      call c_checkpoint_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_checkpoint_options_init_size(options, size)
      type(fsdp_checkpoint_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_checkpoint_options_init_size(options, size)
   end subroutine

   subroutine fsdp_checkpoint_load_options_init(options)
      type(fsdp_checkpoint_load_options), intent(out) :: options

      call c_checkpoint_load_options_init_size(options, c_sizeof(options))
   end subroutine

   subroutine fsdp_checkpoint_load_options_init_size(options, size)
      type(fsdp_checkpoint_load_options), intent(out) :: options
      integer(c_size_t), intent(in) :: size

      call c_checkpoint_load_options_init_size(options, size)
   end subroutine

   function options_or_default(options) result(chosen)
      type(fsdp_checkpoint_options), intent(in), optional :: options
      type(fsdp_checkpoint_options) :: chosen

      if (present(options)) then
         chosen = options
      else
         call fsdp_checkpoint_options_init(chosen)
      end if
   end function

   function load_options_or_default(options) result(chosen)
      type(fsdp_checkpoint_load_options), intent(in), optional :: options
      type(fsdp_checkpoint_load_options) :: chosen

      if (present(options)) then
         chosen = options
      else
         call fsdp_checkpoint_load_options_init(chosen)
      end if
   end function

   ! Puts a text into a member of a struct, as fsdp_checkpoint_state%text; what is too long is cut.
   pure subroutine fsdp_set_text(member, text)
      character(kind=c_char), intent(out) :: member(:)
      character(*), intent(in) :: text
      integer :: i

      member = c_null_char
      do i = 1, min(len_trim(text), size(member) - 1)
         member(i) = text(i:i)
      end do
   end subroutine

   ! ---- opening and closing

   subroutine fsdp_checkpoint_open(model, folder, checkpoint, optimizer, options, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: folder
      type(fsdp_checkpoint), intent(out) :: checkpoint
      type(fsdp_optimizer), intent(in), optional :: optimizer
      type(fsdp_checkpoint_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(c_ptr) :: opened
      integer(c_int) :: code

      opened = c_null_ptr
      code = c_checkpoint_open(address(model), address_or_null(optimizer), c_text(folder), &
                               options_or_default(options), opened)
      if (code /= FSDP_OK) opened = c_null_ptr
      call set_handle(checkpoint, opened, model)
      call finish(code, 'fsdp_checkpoint_open', model, status)
   end subroutine

   subroutine fsdp_checkpoint_open_folder(ctx, folder, checkpoint, options, status)
      type(fsdp_context), intent(in) :: ctx
      character(*), intent(in) :: folder
      type(fsdp_checkpoint), intent(out) :: checkpoint
      type(fsdp_checkpoint_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(c_ptr) :: opened
      integer(c_int) :: code

      opened = c_null_ptr
      code = c_checkpoint_open_folder(address(ctx), c_text(folder), options_or_default(options), opened)
      if (code /= FSDP_OK) opened = c_null_ptr
      call set_handle(checkpoint, opened, ctx)
      call finish(code, 'fsdp_checkpoint_open_folder', ctx, status)
   end subroutine

   subroutine fsdp_checkpoint_close(checkpoint, status)
      type(fsdp_checkpoint), intent(inout) :: checkpoint
      integer, intent(out), optional :: status
      integer(c_int) :: code

      code = c_checkpoint_close(address(checkpoint))
      call set_handle(checkpoint, c_null_ptr, checkpoint)
      call finish(code, 'fsdp_checkpoint_close', checkpoint, status)
   end subroutine

   ! A further model, under a name.
   subroutine fsdp_checkpoint_add_model(checkpoint, name, model, optimizer, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name
      type(fsdp_model), intent(in) :: model
      type(fsdp_optimizer), intent(in), optional :: optimizer
      integer, intent(out), optional :: status

      call finish(c_checkpoint_add_model(address(checkpoint), c_text(name), address(model), address_or_null(optimizer)), &
                  'fsdp_checkpoint_add_model', checkpoint, status)
   end subroutine

   ! ---- arrays of the program

   ! As C has it: `shape` and `box` in C's order, and an address that stays valid until the checkpoint is closed.
   subroutine add_address(checkpoint, name, dtype, shape, memory, box, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name
      integer, intent(in) :: dtype
      integer(c_size_t), intent(in) :: shape(:)
      type(c_ptr), intent(in) :: memory
      type(fsdp_box), intent(in), optional, target :: box
      integer, intent(out), optional :: status
      type(c_ptr) :: given

      given = c_null_ptr
      if (present(box)) given = c_loc(box)
      call finish(c_checkpoint_add(address(checkpoint), c_text(name), dtype, size(shape, kind=c_size_t), shape, given, &
                  memory), 'fsdp_checkpoint_add', checkpoint, status)
   end subroutine

   ! An array of elements of `dtype`, contiguous, a target, and there until the checkpoint is closed. Alone: every rank
   ! has all of it, alike. Or it is this rank's box of an array with `extents`, of which `offset` elements in each
   ! dimension come before it. Dimensions are in Fortran's order; in the file the array has them in C's, as every tensor
   ! there.
   subroutine add_array(checkpoint, name, dtype, array, extents, offset, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name
      integer, intent(in) :: dtype
      type(*), intent(in), target :: array(..)
      integer(c_size_t), intent(in), optional :: extents(:), offset(:)
      integer, intent(out), optional :: status
      type(fsdp_box) :: box
      type(c_ptr) :: memory
      integer(c_size_t) :: own(rank(array))
      integer :: n

      n = rank(array)
      own = shape(array, kind=c_size_t)
      memory = c_loc(array)
      if (.not. is_contiguous(array)) memory = c_null_ptr ! the library refuses that, on every rank
      if (present(extents) .and. present(offset)) then
         if (size(extents) == n .and. size(offset) == n) then
            box%extent(:n) = own(n:1:-1)
            box%offset(:n) = offset(n:1:-1)
         end if
         call add_address(checkpoint, name, dtype, extents(size(extents):1:-1), memory, box, status)
      else
         call add_address(checkpoint, name, dtype, own(n:1:-1), memory, status=status)
      end if
   end subroutine

   ! `bytes` and `n_bytes` are targets that stay valid until the checkpoint is closed.
   subroutine fsdp_checkpoint_add_bytes(checkpoint, name, bytes, n_bytes, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name
      character(kind=c_char), intent(inout), target :: bytes(:)
      integer(c_size_t), intent(inout), target :: n_bytes
      integer, intent(out), optional :: status
      type(c_ptr) :: memory

      memory = c_loc(bytes)
      if (.not. is_contiguous(bytes)) memory = c_null_ptr ! the library refuses that, on every rank
      call finish(c_checkpoint_add_bytes(address(checkpoint), c_text(name), memory, size(bytes, kind=c_size_t), &
                  c_loc(n_bytes)), 'fsdp_checkpoint_add_bytes', checkpoint, status)
   end subroutine

   ! Columns have names, types and, where they are not 1, widths.
   subroutine fsdp_checkpoint_add_rows(checkpoint, name, columns, dtypes, widths, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name, columns(:)
      integer, intent(in) :: dtypes(:)
      integer, intent(in), optional :: widths(:)
      integer, intent(out), optional :: status
      character(kind=c_char, len=len(columns) + 1), target :: texts(size(columns))
      type(fsdp_column) :: structs(size(columns))
      integer :: i

      do i = 1, size(columns)
         texts(i) = c_text(columns(i))
         structs(i) = fsdp_column(c_loc(texts(i)), dtypes(i), 1_c_size_t)
         if (present(widths)) structs(i)%width = int(widths(i), c_size_t)
      end do
      call finish(c_checkpoint_add_rows(address(checkpoint), c_text(name), size(columns, kind=c_size_t), structs), &
                  'fsdp_checkpoint_add_rows', checkpoint, status)
   end subroutine

   ! `columns` holds the address of each column's array. It, all that it points to, and `ids` are targets that stay as
   ! they are until the next save returns.
   subroutine fsdp_checkpoint_set_rows(checkpoint, name, ids, columns, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name
      integer(c_int64_t), intent(in), target :: ids(:)
      type(c_ptr), intent(in), target :: columns(:)
      integer, intent(out), optional :: status

      if (.not. (is_contiguous(ids) .and. is_contiguous(columns))) then
         call refuse('an array is not contiguous', 'fsdp_checkpoint_set_rows', checkpoint, status)
      else
         call finish(c_checkpoint_set_rows(address(checkpoint), c_text(name), size(ids, kind=c_size_t), c_loc(ids), &
                     c_loc(columns)), 'fsdp_checkpoint_set_rows', checkpoint, status)
      end if
   end subroutine

   ! The rows that fsdp_checkpoint_restore() has given this rank: their numbers, and the address of each column's
   ! elements.
   subroutine fsdp_checkpoint_get_rows(checkpoint, name, ids, columns, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: name
      integer(c_int64_t), pointer, intent(out) :: ids(:)
      type(c_ptr), intent(out) :: columns(:)
      integer, intent(out), optional :: status
      type(c_ptr) :: numbers
      integer(c_size_t) :: n
      integer(c_int) :: code

      nullify (ids)
      numbers = c_null_ptr
      columns = c_null_ptr
      code = c_checkpoint_get_rows(address(checkpoint), c_text(name), n, numbers, columns)
      if (code == FSDP_OK .and. c_associated(numbers)) call c_f_pointer(numbers, ids, [n])
      if (code == FSDP_OK .and. .not. associated(ids)) ids => no_rows
      call finish(code, 'fsdp_checkpoint_get_rows', checkpoint, status)
   end subroutine

   ! ---- saving

   subroutine fsdp_checkpoint_save(checkpoint, state, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      type(fsdp_checkpoint_state), intent(in) :: state
      integer, intent(out), optional :: status

      call finish(c_checkpoint_save(address(checkpoint), state), 'fsdp_checkpoint_save', checkpoint, status)
   end subroutine

   subroutine fsdp_checkpoint_save_async(checkpoint, state, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      type(fsdp_checkpoint_state), intent(in) :: state
      integer, intent(out), optional :: status

      call finish(c_checkpoint_save_async(address(checkpoint), state), 'fsdp_checkpoint_save_async', checkpoint, status)
   end subroutine

   subroutine fsdp_checkpoint_cache(checkpoint, state, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      type(fsdp_checkpoint_state), intent(in) :: state
      integer, intent(out), optional :: status

      call finish(c_checkpoint_cache(address(checkpoint), state), 'fsdp_checkpoint_cache', checkpoint, status)
   end subroutine

   subroutine fsdp_checkpoint_progress(checkpoint, done, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      logical, intent(out), optional :: done
      integer, intent(out), optional :: status
      integer(c_int) :: code, is_done

      is_done = 0
      code = c_checkpoint_progress(address(checkpoint), is_done)
      if (present(done)) done = is_done /= 0
      call finish(code, 'fsdp_checkpoint_progress', checkpoint, status)
   end subroutine

   subroutine fsdp_checkpoint_wait(checkpoint, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      integer, intent(out), optional :: status

      call finish(c_checkpoint_wait(address(checkpoint)), 'fsdp_checkpoint_wait', checkpoint, status)
   end subroutine

   subroutine fsdp_checkpoint_budget(checkpoint, budget, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      type(fsdp_budget), intent(inout) :: budget
      integer, intent(out), optional :: status

      call finish(c_checkpoint_budget(address(checkpoint), budget), 'fsdp_checkpoint_budget', checkpoint, status)
   end subroutine

   ! ---- loading

   ! The path of the last checkpoint in a folder; "" if there is none.
   subroutine fsdp_checkpoint_latest(ctx, folder, path, status)
      type(fsdp_context), intent(in) :: ctx
      character(*), intent(in) :: folder
      character(:), allocatable, intent(out) :: path
      integer, intent(out), optional :: status
      character(kind=c_char) :: found(FSDP_CHECKPOINT_PATH_BYTES)
      integer(c_int) :: code

      found = c_null_char
      code = c_checkpoint_latest(address(ctx), c_text(folder), found, size(found, kind=c_size_t))
      path = fsdp_string(found)
      call finish(code, 'fsdp_checkpoint_latest', ctx, status)
   end subroutine

   ! `name` is the one under which the model was added to the checkpoint; without it, the model had none.
   subroutine fsdp_checkpoint_load(model, path, state, optimizer, options, name, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: path
      type(fsdp_checkpoint_state), intent(inout), optional :: state
      type(fsdp_optimizer), intent(in), optional :: optimizer
      type(fsdp_checkpoint_load_options), intent(in), optional :: options
      character(*), intent(in), optional :: name
      integer, intent(out), optional :: status
      type(fsdp_checkpoint_load_options) :: chosen
      character(kind=c_char, len=:), allocatable, target :: text
      type(fsdp_checkpoint_state) :: found
      integer(c_int) :: code

      chosen = load_options_or_default(options)
      if (present(name)) then
         text = c_text(name)
         chosen%model = c_loc(text)
      end if
      code = c_checkpoint_load(address(model), address_or_null(optimizer), c_text(path), chosen, found)
      if (present(state) .and. code == FSDP_OK) state = found
      call finish(code, 'fsdp_checkpoint_load', model, status)
   end subroutine

   subroutine fsdp_checkpoint_restore(checkpoint, path, state, options, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      character(*), intent(in) :: path
      type(fsdp_checkpoint_state), intent(inout), optional :: state
      type(fsdp_checkpoint_load_options), intent(in), optional :: options
      integer, intent(out), optional :: status
      type(fsdp_checkpoint_state) :: found
      integer(c_int) :: code

      code = c_checkpoint_restore(address(checkpoint), c_text(path), load_options_or_default(options), found)
      if (present(state) .and. code == FSDP_OK) state = found
      call finish(code, 'fsdp_checkpoint_restore', checkpoint, status)
   end subroutine

   ! ---- single tensors, in the masters' type, as contiguous arrays in Fortran's order of dimensions. Where `values` is
   ! not used, on ranks other than `root`, an array of no elements will do. With addresses `bytes` is what these hold.

   subroutine export_address(model, name, root, values, bytes, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(in) :: root
      type(c_ptr), intent(in) :: values
      integer(c_size_t), intent(in) :: bytes
      integer, intent(out), optional :: status

      call finish(c_tensor_export(address(model), c_text(name), root, values, bytes), 'fsdp_tensor_export', model, &
                  status)
   end subroutine

   subroutine export_f32(model, name, root, values, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(in) :: root
      real(c_float), intent(inout), target :: values(..)
      integer, intent(out), optional :: status

      call export_address(model, name, root, c_loc(values), bytes_of(4, size(values, kind=c_size_t), &
                          is_contiguous(values)), status)
   end subroutine

   subroutine export_f64(model, name, root, values, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(in) :: root
      real(c_double), intent(inout), target :: values(..)
      integer, intent(out), optional :: status

      call export_address(model, name, root, c_loc(values), bytes_of(8, size(values, kind=c_size_t), &
                          is_contiguous(values)), status)
   end subroutine

   subroutine export_to_all_address(model, name, values, bytes, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      type(c_ptr), intent(in) :: values
      integer(c_size_t), intent(in) :: bytes
      integer, intent(out), optional :: status

      call finish(c_tensor_export_to_all(address(model), c_text(name), values, bytes), 'fsdp_tensor_export_to_all', &
                  model, status)
   end subroutine

   subroutine export_to_all_f32(model, name, values, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      real(c_float), intent(inout), target :: values(..)
      integer, intent(out), optional :: status

      call export_to_all_address(model, name, c_loc(values), bytes_of(4, size(values, kind=c_size_t), &
                                 is_contiguous(values)), status)
   end subroutine

   subroutine export_to_all_f64(model, name, values, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      real(c_double), intent(inout), target :: values(..)
      integer, intent(out), optional :: status

      call export_to_all_address(model, name, c_loc(values), bytes_of(8, size(values, kind=c_size_t), &
                                 is_contiguous(values)), status)
   end subroutine

   subroutine import_address(model, name, root, values, bytes, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(in) :: root
      type(c_ptr), intent(in) :: values
      integer(c_size_t), intent(in) :: bytes
      integer, intent(out), optional :: status

      call finish(c_tensor_import(address(model), c_text(name), root, values, bytes), 'fsdp_tensor_import', model, &
                  status)
   end subroutine

   subroutine import_f32(model, name, root, values, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(in) :: root
      real(c_float), intent(in), target :: values(..)
      integer, intent(out), optional :: status

      call import_address(model, name, root, c_loc(values), bytes_of(4, size(values, kind=c_size_t), &
                          is_contiguous(values)), status)
   end subroutine

   subroutine import_f64(model, name, root, values, status)
      type(fsdp_model), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(in) :: root
      real(c_double), intent(in), target :: values(..)
      integer, intent(out), optional :: status

      call import_address(model, name, root, c_loc(values), bytes_of(8, size(values, kind=c_size_t), &
                          is_contiguous(values)), status)
   end subroutine

   ! Of no array: the library refuses that, on every rank.
   pure integer(c_size_t) function bytes_of(bytes, count, contiguous)
      integer, intent(in) :: bytes
      integer(c_size_t), intent(in) :: count
      logical, intent(in) :: contiguous

      bytes_of = merge(bytes * count, huge(count), contiguous)
   end function
end module
