! Meshes, fsdp/mesh.h. Axes are in C's order: the last one varies fastest. Positions and ranks count from 0, as MPI's.
module fsdp_meshes
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_files
   implicit none
   private

   public :: fsdp_mesh_context, fsdp_mesh_create, fsdp_mesh_destroy, fsdp_mesh_position, fsdp_mesh_print
   public :: fsdp_mesh_rank, fsdp_mesh_size

   type, extends(any_handle), public :: fsdp_mesh
   end type

   interface
      integer(c_int) function c_mesh_create(ctx, axes, n_axes, order, mesh) bind(C, name="fsdp_mesh_create")
         import :: c_int, c_ptr, c_size_t, fsdp_axis
         type(c_ptr), value           :: ctx, order
         type(fsdp_axis), intent(in)  :: axes(*)
         integer(c_size_t), value     :: n_axes
         type(c_ptr), intent(out)     :: mesh
      end function

      integer(c_int) function c_mesh_context(mesh, axes, ctx) bind(C, name="fsdp_mesh_context")
         import :: c_char, c_int, c_ptr
         type(c_ptr), value                 :: mesh
         character(kind=c_char), intent(in) :: axes(*)
         type(c_ptr), intent(out)           :: ctx
      end function

      integer(c_int) function c_mesh_size(mesh, axes) bind(C, name="fsdp_mesh_size")
         import :: c_char, c_int, c_ptr
         type(c_ptr), value                 :: mesh
         character(kind=c_char), intent(in) :: axes(*)
      end function

      integer(c_int) function c_mesh_position(mesh, axes) bind(C, name="fsdp_mesh_position")
         import :: c_char, c_int, c_ptr
         type(c_ptr), value                 :: mesh
         character(kind=c_char), intent(in) :: axes(*)
      end function

      integer(c_int) function c_mesh_rank(mesh, positions) bind(C, name="fsdp_mesh_rank")
         import :: c_int, c_ptr
         type(c_ptr), value         :: mesh
         integer(c_int), intent(in) :: positions(*)
      end function

      integer(c_int) function c_mesh_print(mesh, file) bind(C, name="fsdp_mesh_print")
         import :: c_int, c_ptr
         type(c_ptr), value :: mesh, file
      end function

      subroutine c_mesh_destroy(mesh) bind(C, name="fsdp_mesh_destroy")
         import :: c_ptr
         type(c_ptr), value :: mesh
      end subroutine
   end interface

contains

   ! `names` and `sizes` have one element for each axis. Blanks behind a name do not count.
   subroutine fsdp_mesh_create(ctx, names, sizes, mesh, order, status)
      type(fsdp_context), intent(in) :: ctx
      character(*), intent(in) :: names(:)
      integer, intent(in) :: sizes(:)
      type(fsdp_mesh), intent(out) :: mesh
      integer, intent(in), optional, target, contiguous :: order(:)
      integer, intent(out), optional :: status
      character(len(names) + 1, c_char), allocatable, target :: texts(:)
      type(fsdp_axis), allocatable :: axes(:)
      type(c_ptr) :: created, places
      integer(c_int) :: code
      integer :: i, n

      n = merge(size(names), 0, size(names) == size(sizes)) ! 0 is refused, on all ranks
      allocate (texts(n), axes(n))
      do i = 1, n
         texts(i) = c_text(trim(names(i)))
         axes(i)%name = c_loc(texts(i))
         axes(i)%size = sizes(i)
      end do
      places = c_null_ptr
      if (present(order)) places = c_loc(order)
      created = c_null_ptr
      code = c_mesh_create(address(ctx), axes, int(n, c_size_t), places, created)
      if (code /= FSDP_OK) created = c_null_ptr
      call set_handle(mesh, created, ctx)
      call finish(code, 'fsdp_mesh_create', ctx, status)
   end subroutine

   ! The context belongs to the mesh: it must not be finalized.
   subroutine fsdp_mesh_context(mesh, axes, ctx, status)
      type(fsdp_mesh), intent(in) :: mesh
      character(*), intent(in) :: axes
      type(fsdp_context), intent(out) :: ctx
      integer, intent(out), optional :: status
      type(c_ptr) :: opened
      integer(c_int) :: code

      opened = c_null_ptr
      code = c_mesh_context(address(mesh), c_text(axes), opened)
      if (code /= FSDP_OK) opened = c_null_ptr
      call set_context(ctx, opened, communicator_of(mesh))
      call finish(code, 'fsdp_mesh_context', mesh, status)
   end subroutine

   integer function fsdp_mesh_size(mesh, axes)
      type(fsdp_mesh), intent(in) :: mesh
      character(*), intent(in) :: axes

      fsdp_mesh_size = c_mesh_size(address(mesh), c_text(axes))
   end function

   integer function fsdp_mesh_position(mesh, axes)
      type(fsdp_mesh), intent(in) :: mesh
      character(*), intent(in) :: axes

      fsdp_mesh_position = c_mesh_position(address(mesh), c_text(axes))
   end function

   integer function fsdp_mesh_rank(mesh, positions)
      type(fsdp_mesh), intent(in) :: mesh
      integer, intent(in) :: positions(:)

      fsdp_mesh_rank = c_mesh_rank(address(mesh), positions)
   end function

   subroutine fsdp_mesh_print(mesh, file, status)
      type(fsdp_mesh), intent(in) :: mesh
      character(*), intent(in), optional :: file
      integer, intent(out), optional :: status
      type(c_ptr) :: stream
      integer(c_int) :: code

      code = open_stream(file, stream)
      if (code == FSDP_OK) code = c_mesh_print(address(mesh), stream)
      call close_stream(stream)
      call finish(code, 'fsdp_mesh_print', mesh, status)
   end subroutine

   subroutine fsdp_mesh_destroy(mesh)
      type(fsdp_mesh), intent(inout) :: mesh

      call c_mesh_destroy(address(mesh))
      call set_handle(mesh, c_null_ptr, mesh)
   end subroutine
end module
