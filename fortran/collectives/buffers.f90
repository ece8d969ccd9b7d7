! Symmetric buffers, as addresses: fsdp/buffer.h. For arrays see buffers_of.inc.
module fsdp_buffers
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_base
   implicit none
   private
   public :: fsdp_buffer_alloc, fsdp_buffer_free, fsdp_buffer_peer

   interface fsdp_buffer_alloc
      module procedure alloc
   end interface
   interface fsdp_buffer_free
      module procedure free
   end interface
   interface fsdp_buffer_peer
      module procedure peer_of
   end interface

   interface
      integer(c_int) function c_buffer_alloc(ctx, kind, bytes, memory) bind(C, name="fsdp_buffer_alloc")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx
         integer(c_int), value    :: kind
         integer(c_size_t), value :: bytes
         type(c_ptr), intent(out) :: memory
      end function

      integer(c_int) function c_buffer_free(ctx, memory) bind(C, name="fsdp_buffer_free")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx, memory
      end function

      integer(c_int) function c_buffer_peer(ctx, memory, rank, peer) bind(C, name="fsdp_buffer_peer")
         import :: c_int, c_ptr
         type(c_ptr), value       :: ctx, memory
         integer(c_int), value    :: rank
         type(c_ptr), intent(out) :: peer
      end function
   end interface

contains

   subroutine alloc(ctx, kind, bytes, memory, status)
      type(fsdp_context), intent(in) :: ctx
      integer, intent(in) :: kind
      integer(c_size_t), intent(in) :: bytes
      type(c_ptr), intent(out) :: memory
      integer, intent(out), optional :: status
      integer(c_int) :: code

      memory = c_null_ptr
      code = c_buffer_alloc(address(ctx), kind, bytes, memory)
      if (code /= FSDP_OK) memory = c_null_ptr
      call finish(code, 'fsdp_buffer_alloc', ctx, status)
   end subroutine

   subroutine free(ctx, memory, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: memory
      integer, intent(out), optional :: status

      call finish(c_buffer_free(address(ctx), memory), 'fsdp_buffer_free', ctx, status)
   end subroutine

   subroutine peer_of(ctx, memory, rank, peer, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: memory
      integer, intent(in) :: rank
      type(c_ptr), intent(out) :: peer
      integer, intent(out), optional :: status
      integer(c_int) :: code

      peer = c_null_ptr
      code = c_buffer_peer(address(ctx), memory, rank, peer)
      if (code /= FSDP_OK) peer = c_null_ptr
      call finish(code, 'fsdp_buffer_peer', ctx, status)
   end subroutine
end module
