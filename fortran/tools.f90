! What a training loop needs beside a model: random numbers, samplers, stopping on signals, and the table of algorithms;
! fsdp/random.h, fsdp/sampler.h, fsdp/stop.h, fsdp/algorithms.h. Indices, samples and epochs count from 0, as in C.
module fsdp_tools
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_structs
   use fsdp_base
   use fsdp_files
   implicit none
   private

   public :: fsdp_algorithm_text, fsdp_algorithms_print, fsdp_algorithms_print_for, fsdp_cache_bytes, fsdp_cluster_of
   public :: fsdp_last_algorithm, fsdp_random_bits, fsdp_random_normal, fsdp_random_stream, fsdp_random_uniform
   public :: fsdp_sampler_check, fsdp_sampler_index, fsdp_sampler_length, fsdp_stop_agree, fsdp_stop_signal
   public :: fsdp_stop_unwatch, fsdp_stop_watch

   interface
      type(c_ptr) function c_algorithm_text(algorithm) bind(C, name="fsdp_algorithm_text")
         import :: c_int, c_ptr
         integer(c_int), value :: algorithm
      end function

      integer(c_int) function c_algorithms_print(ctx, file) bind(C, name="fsdp_algorithms_print")
         import :: c_int, c_ptr
         type(c_ptr), value :: ctx, file
      end function

      integer(c_int) function c_algorithms_print_for(ctx, cluster, file) bind(C, name="fsdp_algorithms_print_for")
         import :: c_int, c_ptr, fsdp_cluster
         type(c_ptr), value             :: ctx, file
         type(fsdp_cluster), intent(in) :: cluster
      end function

      integer(c_int) function c_cluster_of(ctx, cluster) bind(C, name="fsdp_cluster_of")
         import :: c_int, c_ptr, fsdp_cluster
         type(c_ptr), value              :: ctx
         type(fsdp_cluster), intent(out) :: cluster
      end function

      type(c_ptr) function c_last_algorithm(ctx) bind(C, name="fsdp_last_algorithm")
         import :: c_ptr
         type(c_ptr), value :: ctx
      end function

      integer(c_size_t) function c_cache_bytes(ctx) bind(C, name="fsdp_cache_bytes")
         import :: c_ptr, c_size_t
         type(c_ptr), value :: ctx
      end function

      pure integer(c_int64_t) function c_random_stream(name) bind(C, name="fsdp_random_stream")
         import :: c_char, c_int64_t
         character(kind=c_char), intent(in) :: name(*)
      end function

      pure integer(c_int64_t) function c_random_bits(seed, stream, index) bind(C, name="fsdp_random_bits")
         import :: c_int64_t
         integer(c_int64_t), value :: seed, stream, index
      end function

      pure real(c_double) function c_random_uniform(seed, stream, index) bind(C, name="fsdp_random_uniform")
         import :: c_double, c_int64_t
         integer(c_int64_t), value :: seed, stream, index
      end function

      pure real(c_double) function c_random_normal(seed, stream, index) bind(C, name="fsdp_random_normal")
         import :: c_double, c_int64_t
         integer(c_int64_t), value :: seed, stream, index
      end function

      integer(c_int) function c_sampler_check(sampler) bind(C, name="fsdp_sampler_check")
         import :: c_int, fsdp_sampler
         type(fsdp_sampler), intent(in) :: sampler
      end function

      pure integer(c_size_t) function c_sampler_length(sampler) bind(C, name="fsdp_sampler_length")
         import :: c_size_t, fsdp_sampler
         type(fsdp_sampler), intent(in) :: sampler
      end function

      pure integer(c_size_t) function c_sampler_index(sampler, epoch, i) bind(C, name="fsdp_sampler_index")
         import :: c_int64_t, c_size_t, fsdp_sampler
         type(fsdp_sampler), intent(in) :: sampler
         integer(c_int64_t), value      :: epoch
         integer(c_size_t), value       :: i
      end function

      integer(c_int) function c_stop_watch(signals, n) bind(C, name="fsdp_stop_watch")
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: signals
         integer(c_size_t), value :: n
      end function

      subroutine c_stop_unwatch() bind(C, name="fsdp_stop_unwatch")
      end subroutine

      integer(c_int) function c_stop_signal() bind(C, name="fsdp_stop_signal")
         import :: c_int
      end function

      integer(c_int) function c_stop_agree(ctx, signal) bind(C, name="fsdp_stop_agree")
         import :: c_int, c_ptr
         type(c_ptr), value          :: ctx
         integer(c_int), intent(out) :: signal
      end function
   end interface

contains

   ! ---- random numbers. Unsigned numbers of 64 bits are integers of the same bits.

   pure integer(c_int64_t) function fsdp_random_stream(name)
      character(*), intent(in) :: name

      fsdp_random_stream = c_random_stream(c_text(name))
   end function

   pure integer(c_int64_t) function fsdp_random_bits(seed, stream, index)
      integer(c_int64_t), intent(in) :: seed, stream, index

      fsdp_random_bits = c_random_bits(seed, stream, index)
   end function

   pure real(c_double) function fsdp_random_uniform(seed, stream, index)
      integer(c_int64_t), intent(in) :: seed, stream, index

      fsdp_random_uniform = c_random_uniform(seed, stream, index)
   end function

   pure real(c_double) function fsdp_random_normal(seed, stream, index)
      integer(c_int64_t), intent(in) :: seed, stream, index

      fsdp_random_normal = c_random_normal(seed, stream, index)
   end function

   ! ---- samplers

   subroutine fsdp_sampler_check(sampler, status)
      type(fsdp_sampler), intent(in) :: sampler
      integer, intent(out), optional :: status

      call finish(c_sampler_check(sampler), 'fsdp_sampler_check', status=status)
   end subroutine

   pure integer(c_size_t) function fsdp_sampler_length(sampler)
      type(fsdp_sampler), intent(in) :: sampler

      fsdp_sampler_length = c_sampler_length(sampler)
   end function

   pure integer(c_size_t) function fsdp_sampler_index(sampler, epoch, i)
      type(fsdp_sampler), intent(in) :: sampler
      integer(c_int64_t), intent(in) :: epoch
      integer(c_size_t), intent(in) :: i

      fsdp_sampler_index = c_sampler_index(sampler, epoch, i)
   end function

   ! ---- stopping

   ! SIGUSR1 and SIGTERM, if no others are given.
   subroutine fsdp_stop_watch(signals, status)
      integer(c_int), intent(in), optional, target, contiguous :: signals(:)
      integer, intent(out), optional :: status

      if (present(signals)) then
         call finish(c_stop_watch(c_loc(signals), size(signals, kind=c_size_t)), 'fsdp_stop_watch', status=status)
      else
         call finish(c_stop_watch(c_null_ptr, 0_c_size_t), 'fsdp_stop_watch', status=status)
      end if
   end subroutine

   subroutine fsdp_stop_unwatch()
      call c_stop_unwatch()
   end subroutine

   integer function fsdp_stop_signal()
      fsdp_stop_signal = c_stop_signal()
   end function

   subroutine fsdp_stop_agree(ctx, signal, status)
      type(fsdp_context), intent(in) :: ctx
      integer, intent(out) :: signal
      integer, intent(out), optional :: status

      signal = 0
      call finish(c_stop_agree(address(ctx), signal), 'fsdp_stop_agree', ctx, status)
   end subroutine

   ! ---- algorithms

   function fsdp_algorithm_text(algorithm) result(text)
      integer, intent(in) :: algorithm
      character(:), allocatable :: text

      text = fsdp_string(c_algorithm_text(algorithm))
   end function

   ! To a file of that name, or to standard output.
   subroutine fsdp_algorithms_print(ctx, file, status)
      type(fsdp_context), intent(in), optional :: ctx
      character(*), intent(in), optional :: file
      integer, intent(out), optional :: status
      type(c_ptr) :: stream
      integer(c_int) :: code

      code = open_stream(file, stream)
      if (code == FSDP_OK) code = c_algorithms_print(address_or_null(ctx), stream)
      call close_stream(stream)
      call finish(code, 'fsdp_algorithms_print', ctx, status)
   end subroutine

   subroutine fsdp_algorithms_print_for(cluster, ctx, file, status)
      type(fsdp_cluster), intent(in) :: cluster
      type(fsdp_context), intent(in), optional :: ctx
      character(*), intent(in), optional :: file
      integer, intent(out), optional :: status
      type(c_ptr) :: stream
      integer(c_int) :: code

      code = open_stream(file, stream)
      if (code == FSDP_OK) code = c_algorithms_print_for(address_or_null(ctx), cluster, stream)
      call close_stream(stream)
      call finish(code, 'fsdp_algorithms_print_for', ctx, status)
   end subroutine

   subroutine fsdp_cluster_of(ctx, cluster, status)
      type(fsdp_context), intent(in) :: ctx
      type(fsdp_cluster), intent(out) :: cluster
      integer, intent(out), optional :: status

      call finish(c_cluster_of(address(ctx), cluster), 'fsdp_cluster_of', ctx, status)
   end subroutine

   function fsdp_last_algorithm(ctx) result(text)
      type(fsdp_context), intent(in) :: ctx
      character(:), allocatable :: text

      text = fsdp_string(c_last_algorithm(address(ctx)))
   end function

   integer(c_size_t) function fsdp_cache_bytes(ctx)
      type(fsdp_context), intent(in) :: ctx

      fsdp_cache_bytes = c_cache_bytes(address(ctx))
   end function
end module
