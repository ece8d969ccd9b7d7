! The handles of the module mpi_f08, where the MPI has it.
module fsdp_mpi_f08
   use mpi_f08, only: MPI_Comm
   use fsdp_structs
   use fsdp_base
   use fsdp_contexts
   use fsdp_topologies
   implicit none
   private
   public :: fsdp_comm_order_by_node, fsdp_init, fsdp_init_f

   interface fsdp_init
      module procedure init
   end interface
   interface fsdp_comm_order_by_node
      module procedure order_by_node
   end interface

contains

   subroutine init(communicator, ctx, config, status)
      type(MPI_Comm), intent(in) :: communicator
      type(fsdp_context), intent(out) :: ctx
      type(fsdp_config), intent(in), optional :: config
      integer, intent(out), optional :: status

      call fsdp_init_f(communicator%MPI_VAL, ctx, config, status)
   end subroutine

   subroutine order_by_node(communicator, ordered, status)
      type(MPI_Comm), intent(in) :: communicator
      type(MPI_Comm), intent(out) :: ordered
      integer, intent(out), optional :: status

      call fsdp_comm_order_by_node(communicator%MPI_VAL, ordered%MPI_VAL, status)
   end subroutine
end module
