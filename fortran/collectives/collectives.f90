! Collectives on addresses, as C has them, and requests: fsdp/collectives.h. For arrays see collectives_of.inc.
module fsdp_collectives
   use, intrinsic :: iso_c_binding
   use fsdp_base
   implicit none
   private

   public :: fsdp_allgather, fsdp_allgatherv, fsdp_allreduce, fsdp_alltoall, fsdp_alltoallv, fsdp_barrier
   public :: fsdp_broadcast, fsdp_iallgather, fsdp_iallgatherv, fsdp_iallreduce, fsdp_ialltoall, fsdp_ialltoallv
   public :: fsdp_ibarrier, fsdp_ibroadcast, FSDP_IN_PLACE, fsdp_ireduce, fsdp_ireduce_scatter, fsdp_ireduce_scatterv
   public :: fsdp_reduce, fsdp_reduce_scatter, fsdp_reduce_scatterv, fsdp_test, fsdp_wait, fsdp_wait_all

   type, extends(any_handle), public :: fsdp_request
   end type

   ! In place of the input: the output holds it.
   type(c_ptr), parameter :: FSDP_IN_PLACE = transfer(-1_c_intptr_t, c_null_ptr)

   interface fsdp_allgather
      module procedure allgather
   end interface
   interface fsdp_iallgather
      module procedure iallgather
   end interface
   interface fsdp_allgatherv
      module procedure allgatherv
   end interface
   interface fsdp_iallgatherv
      module procedure iallgatherv
   end interface
   interface fsdp_reduce_scatter
      module procedure reduce_scatter
   end interface
   interface fsdp_ireduce_scatter
      module procedure ireduce_scatter
   end interface
   interface fsdp_reduce_scatterv
      module procedure reduce_scatterv
   end interface
   interface fsdp_ireduce_scatterv
      module procedure ireduce_scatterv
   end interface
   interface fsdp_allreduce
      module procedure allreduce
   end interface
   interface fsdp_iallreduce
      module procedure iallreduce
   end interface
   interface fsdp_broadcast
      module procedure broadcast
   end interface
   interface fsdp_ibroadcast
      module procedure ibroadcast
   end interface
   interface fsdp_reduce
      module procedure reduce
   end interface
   interface fsdp_ireduce
      module procedure ireduce
   end interface
   interface fsdp_alltoall
      module procedure alltoall
   end interface
   interface fsdp_ialltoall
      module procedure ialltoall
   end interface
   interface fsdp_alltoallv
      module procedure alltoallv
   end interface
   interface fsdp_ialltoallv
      module procedure ialltoallv
   end interface

   interface
      integer(c_int) function c_wait(request) bind(C, name="fsdp_wait")
         import :: c_int, c_ptr
         type(c_ptr), value :: request
      end function

      integer(c_int) function c_test(request, done) bind(C, name="fsdp_test")
         import :: c_int, c_ptr
         type(c_ptr), value          :: request
         integer(c_int), intent(out) :: done
      end function

      integer(c_int) function c_wait_all(count, requests) bind(C, name="fsdp_wait_all")
         import :: c_int, c_ptr, c_size_t
         integer(c_size_t), value :: count
         type(c_ptr), intent(in)  :: requests(*)
      end function

      integer(c_int) function c_allgather(ctx, shard, full, count, dtype) bind(C, name="fsdp_allgather")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, shard, full
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype
      end function

      integer(c_int) function c_iallgather(ctx, shard, full, count, dtype, request) bind(C, name="fsdp_iallgather")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, shard, full
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function c_allgatherv(ctx, shard, full, counts, dtype) bind(C, name="fsdp_allgatherv")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value            :: ctx, shard, full
         integer(c_size_t), intent(in) :: counts(*)
         integer(c_int), value         :: dtype
      end function

      integer(c_int) function c_iallgatherv(ctx, shard, full, counts, dtype, request) bind(C, name="fsdp_iallgatherv")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value            :: ctx, shard, full
         integer(c_size_t), intent(in) :: counts(*)
         integer(c_int), value         :: dtype
         type(c_ptr), intent(out)      :: request
      end function

      integer(c_int) function c_reduce_scatter(ctx, full, shard, count, dtype, op) bind(C, name="fsdp_reduce_scatter")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, full, shard
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op
      end function

      integer(c_int) function c_ireduce_scatter(ctx, full, shard, count, dtype, op, request&
            ) bind(C, name="fsdp_ireduce_scatter")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, full, shard
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function c_reduce_scatterv(ctx, full, shard, counts, dtype, op&
            ) bind(C, name="fsdp_reduce_scatterv")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value            :: ctx, full, shard
         integer(c_size_t), intent(in) :: counts(*)
         integer(c_int), value         :: dtype, op
      end function

      integer(c_int) function c_ireduce_scatterv(ctx, full, shard, counts, dtype, op, request&
            ) bind(C, name="fsdp_ireduce_scatterv")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value            :: ctx, full, shard
         integer(c_size_t), intent(in) :: counts(*)
         integer(c_int), value         :: dtype, op
         type(c_ptr), intent(out)      :: request
      end function

      integer(c_int) function c_allreduce(ctx, in, out, count, dtype, op) bind(C, name="fsdp_allreduce")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op
      end function

      integer(c_int) function c_iallreduce(ctx, in, out, count, dtype, op, request) bind(C, name="fsdp_iallreduce")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function c_broadcast(ctx, buffer, count, dtype, root) bind(C, name="fsdp_broadcast")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, buffer
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, root
      end function

      integer(c_int) function c_ibroadcast(ctx, buffer, count, dtype, root, request) bind(C, name="fsdp_ibroadcast")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, buffer
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, root
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function c_reduce(ctx, in, out, count, dtype, op, root) bind(C, name="fsdp_reduce")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op, root
      end function

      integer(c_int) function c_ireduce(ctx, in, out, count, dtype, op, root, request) bind(C, name="fsdp_ireduce")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype, op, root
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function c_alltoall(ctx, in, out, count, dtype) bind(C, name="fsdp_alltoall")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype
      end function

      integer(c_int) function c_ialltoall(ctx, in, out, count, dtype, request) bind(C, name="fsdp_ialltoall")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: ctx, in, out
         integer(c_size_t), value :: count
         integer(c_int), value    :: dtype
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function c_alltoallv(ctx, in, in_counts, in_displacements, out, out_counts, &
            out_displacements, dtype) bind(C, name="fsdp_alltoallv")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value            :: ctx, in, out
         integer(c_size_t), intent(in) :: in_counts(*), in_displacements(*), out_counts(*), out_displacements(*)
         integer(c_int), value         :: dtype
      end function

      integer(c_int) function c_ialltoallv(ctx, in, in_counts, in_displacements, out, out_counts, &
            out_displacements, dtype, request) bind(C, name="fsdp_ialltoallv")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value            :: ctx, in, out
         integer(c_size_t), intent(in) :: in_counts(*), in_displacements(*), out_counts(*), out_displacements(*)
         integer(c_int), value         :: dtype
         type(c_ptr), intent(out)      :: request
      end function

      integer(c_int) function c_barrier(ctx) bind(C, name="fsdp_barrier")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx
      end function

      integer(c_int) function c_ibarrier(ctx, request) bind(C, name="fsdp_ibarrier")
         import :: c_int, c_ptr
         type(c_ptr), value       :: ctx
         type(c_ptr), intent(out) :: request
      end function
   end interface

contains

   ! ---- requests

   ! Completes an operation. The request is null afterwards.
   subroutine fsdp_wait(request, status)
      type(fsdp_request), intent(inout) :: request
      integer, intent(out), optional :: status
      integer(c_int) :: code

      code = c_wait(address(request))
      call set_handle(request, c_null_ptr, request)
      call finish(code, 'fsdp_wait', request, status)
   end subroutine

   subroutine fsdp_test(request, done, status)
      type(fsdp_request), intent(inout) :: request
      logical, intent(out) :: done
      integer, intent(out), optional :: status
      integer(c_int) :: code, is_done

      is_done = 0
      code = c_test(address(request), is_done)
      done = is_done /= 0
      if (done) call set_handle(request, c_null_ptr, request)
      call finish(code, 'fsdp_test', request, status)
   end subroutine

   subroutine fsdp_wait_all(requests, status)
      type(fsdp_request), intent(inout) :: requests(:)
      integer, intent(out), optional :: status
      type(c_ptr) :: all(size(requests))
      integer(c_int) :: code
      integer :: i

      do i = 1, size(requests)
         all(i) = address(requests(i))
      end do
      code = c_wait_all(size(requests, kind=c_size_t), all)
      do i = 1, size(requests)
         call set_handle(requests(i), c_null_ptr, requests(i))
      end do
      if (size(requests) > 0) then
         call finish(code, 'fsdp_wait_all', requests(1), status)
      else
         call finish(code, 'fsdp_wait_all', status=status)
      end if
   end subroutine

   subroutine fsdp_barrier(ctx, status)
      type(fsdp_context), intent(in) :: ctx
      integer, intent(out), optional :: status

      call finish(c_barrier(address(ctx)), 'fsdp_barrier', ctx, status)
   end subroutine

   subroutine fsdp_ibarrier(ctx, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_ibarrier(address(ctx), issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ibarrier', ctx, status)
   end subroutine

   ! Counts with gaps would be copied for the call, and the copy be gone before the operation is done.
   logical function copied(contiguous, what, ctx, status)
      logical, intent(in) :: contiguous
      character(*), intent(in) :: what
      type(fsdp_context), intent(in) :: ctx
      integer, intent(out), optional :: status

      copied = .not. contiguous
      if (copied) call refuse('an array of counts is not contiguous', what, ctx, status)
   end function

   ! ---- collectives: `in` and `out` are addresses of `count` elements and more, of host or GPU memory

   subroutine allgather(ctx, shard, full, count, dtype, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: shard, full
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype
      integer, intent(out), optional :: status

      call finish(c_allgather(address(ctx), shard, full, count, dtype), 'fsdp_allgather', ctx, status)
   end subroutine

   subroutine iallgather(ctx, shard, full, count, dtype, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: shard, full
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_iallgather(address(ctx), shard, full, count, dtype, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_iallgather', ctx, status)
   end subroutine

   subroutine allgatherv(ctx, shard, full, counts, dtype, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: shard, full
      integer(c_size_t), intent(in) :: counts(:)
      integer, intent(in) :: dtype
      integer, intent(out), optional :: status

      call finish(c_allgatherv(address(ctx), shard, full, counts, dtype), 'fsdp_allgatherv', ctx, status)
   end subroutine

   subroutine iallgatherv(ctx, shard, full, counts, dtype, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: shard, full
      integer(c_size_t), intent(in) :: counts(:)
      integer, intent(in) :: dtype
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      if (copied(is_contiguous(counts), 'fsdp_iallgatherv', ctx, status)) return
      code = c_iallgatherv(address(ctx), shard, full, counts, dtype, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_iallgatherv', ctx, status)
   end subroutine

   subroutine reduce_scatter(ctx, full, shard, count, dtype, op, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: full, shard
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, op
      integer, intent(out), optional :: status

      call finish(c_reduce_scatter(address(ctx), full, shard, count, dtype, op), 'fsdp_reduce_scatter', ctx, status)
   end subroutine

   subroutine ireduce_scatter(ctx, full, shard, count, dtype, op, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: full, shard
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, op
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_ireduce_scatter(address(ctx), full, shard, count, dtype, op, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ireduce_scatter', ctx, status)
   end subroutine

   subroutine reduce_scatterv(ctx, full, shard, counts, dtype, op, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: full, shard
      integer(c_size_t), intent(in) :: counts(:)
      integer, intent(in) :: dtype, op
      integer, intent(out), optional :: status

      call finish(c_reduce_scatterv(address(ctx), full, shard, counts, dtype, op), 'fsdp_reduce_scatterv', ctx, status)
   end subroutine

   subroutine ireduce_scatterv(ctx, full, shard, counts, dtype, op, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: full, shard
      integer(c_size_t), intent(in) :: counts(:)
      integer, intent(in) :: dtype, op
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      if (copied(is_contiguous(counts), 'fsdp_ireduce_scatterv', ctx, status)) return
      code = c_ireduce_scatterv(address(ctx), full, shard, counts, dtype, op, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ireduce_scatterv', ctx, status)
   end subroutine

   subroutine allreduce(ctx, in, out, count, dtype, op, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, op
      integer, intent(out), optional :: status

      call finish(c_allreduce(address(ctx), in, out, count, dtype, op), 'fsdp_allreduce', ctx, status)
   end subroutine

   subroutine iallreduce(ctx, in, out, count, dtype, op, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, op
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_iallreduce(address(ctx), in, out, count, dtype, op, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_iallreduce', ctx, status)
   end subroutine

   subroutine broadcast(ctx, buffer, count, dtype, root, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: buffer
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, root
      integer, intent(out), optional :: status

      call finish(c_broadcast(address(ctx), buffer, count, dtype, root), 'fsdp_broadcast', ctx, status)
   end subroutine

   subroutine ibroadcast(ctx, buffer, count, dtype, root, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: buffer
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, root
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_ibroadcast(address(ctx), buffer, count, dtype, root, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ibroadcast', ctx, status)
   end subroutine

   subroutine reduce(ctx, in, out, count, dtype, op, root, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, op, root
      integer, intent(out), optional :: status

      call finish(c_reduce(address(ctx), in, out, count, dtype, op, root), 'fsdp_reduce', ctx, status)
   end subroutine

   subroutine ireduce(ctx, in, out, count, dtype, op, root, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype, op, root
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_ireduce(address(ctx), in, out, count, dtype, op, root, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ireduce', ctx, status)
   end subroutine

   subroutine alltoall(ctx, in, out, count, dtype, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype
      integer, intent(out), optional :: status

      call finish(c_alltoall(address(ctx), in, out, count, dtype), 'fsdp_alltoall', ctx, status)
   end subroutine

   subroutine ialltoall(ctx, in, out, count, dtype, request, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: count
      integer, intent(in) :: dtype
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      code = c_ialltoall(address(ctx), in, out, count, dtype, issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ialltoall', ctx, status)
   end subroutine

   subroutine alltoallv(ctx, in, in_counts, in_displacements, out, out_counts, out_displacements, dtype, status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: in_counts(:), in_displacements(:), out_counts(:), out_displacements(:)
      integer, intent(in) :: dtype
      integer, intent(out), optional :: status

      call finish(c_alltoallv(address(ctx), in, in_counts, in_displacements, out, out_counts, out_displacements, &
                  dtype), 'fsdp_alltoallv', ctx, status)
   end subroutine

   subroutine ialltoallv(ctx, in, in_counts, in_displacements, out, out_counts, out_displacements, dtype, request, &
                         status)
      type(fsdp_context), intent(in) :: ctx
      type(c_ptr), intent(in) :: in, out
      integer(c_size_t), intent(in) :: in_counts(:), in_displacements(:), out_counts(:), out_displacements(:)
      integer, intent(in) :: dtype
      type(fsdp_request), intent(out) :: request
      integer, intent(out), optional :: status
      type(c_ptr) :: issued
      integer(c_int) :: code

      if (copied(is_contiguous(in_counts) .and. is_contiguous(in_displacements) .and. is_contiguous(out_counts) .and. &
                 is_contiguous(out_displacements), 'fsdp_ialltoallv', ctx, status)) return
      code = c_ialltoallv(address(ctx), in, in_counts, in_displacements, out, out_counts, out_displacements, dtype, &
                          issued)
      call set_handle(request, issued, ctx)
      call finish(code, 'fsdp_ialltoallv', ctx, status)
   end subroutine
end module
