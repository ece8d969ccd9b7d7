! A simulation in Fortran that trains a surrogate of its most expensive term while it runs. Teaches how to train on what
! a solver has just computed, over the solver's own communicator, with `use fsdp`, and how both go into one checkpoint.
! With SW_PLAIN the same files make the program that has MPI alone: every rank holds the whole surrogate, and each
! tensor's gradient is summed by a call of its own. Where the surrogate is small and stays small, do it that way.
program shallow_water
   use, intrinsic :: iso_fortran_env, only: int64, output_unit
   use mpi_f08
   use sw_options
   use sw_grid
   use sw_flow
   use sw_samples
   use sw_network
   use sw_learner
   use sw_trials
#ifndef SW_PLAIN
   use sw_checkpoint
#endif
   implicit none

   type(grid) :: g
   type(flow), target :: f
   type(network) :: net
   type(learner) :: l
#ifndef SW_PLAIN
   type(saver) :: s
#endif
   real, allocatable :: y(:, :)
   real(dp) :: seconds(3) = 0 ! of all steps, of the term in them, and of training
   integer :: status, step = 0, stopped = 0
   logical :: trains
#ifdef SW_PLAIN

   call MPI_Init()
#else
   integer :: provided

   call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided) ! so that communication overlaps with compute
#endif
   status = 1
   if (options_read(PROGRAM_NAME, WITH_FSDP)) status = run()
   flush (output_unit)
   call MPI_Finalize()
   if (status /= 0) stop status, quiet=.true.

contains

   integer function run() result(status)
      integer :: rank

      status = 0
      call MPI_Comm_rank(MPI_COMM_WORLD, rank)
      if (is_set('help')) then
         if (rank == 0) call options_print()
      else if (.not. grid_open(g, whole_of('nx'), whole_of('ny'))) then
         call say_what_is_wrong(too_small())
         status = 1
      else
         status = 1
         if (open_all()) status = simulate()
         call close_all()
      end if
   end function

   function too_small() result(text)
      character(200) :: text

      write (text, '(6(a, i0))') '--nx is ', g%nx, ' and --ny ', g%ny, ': too few cells for ', &
         g%dims(1), ' x ', g%dims(2), ' ranks; give at least ', HALO * g%dims(1), ' and ', HALO * g%dims(2)
   end function

   logical function open_all() result(good)
      trains = whole_of('updates') > 0
      good = everywhere(flow_open(f, g))
      if (.not. good) call say_what_is_wrong('no memory for the cells; give a smaller --nx or --ny, or use more ranks')
      if (.not. good) return
      if (WITH_FSDP .and. .not. trains) good = text_of('checkpoint') == ''
      if (.not. good) call say_what_is_wrong('--checkpoint saves a surrogate, but --updates is 0; give 1 or more')
      if (.not. good) return
      if (g%rank == 0) print '(4(a, i0), a)', 'basin       ', g%nx, ' x ', g%ny, ' cells on ', &
         g%dims(1), ' x ', g%dims(2), ' ranks'
      if (trains) good = open_learner()
#ifndef SW_PLAIN
      if (good .and. text_of('checkpoint') /= '') good = open_checkpoint()
#endif
   end function

   logical function open_learner() result(good)
      character(:), allocatable :: strategy
      integer :: status

      strategy = ''
      if (WITH_FSDP) strategy = text_of('strategy')
      good = network_open(net, whole_of('layers'), whole_of('width'), whole_of('batch'), .true.)
      if (good) allocate (y(OUTPUTS, whole_of('batch')), stat=status)
      if (good) good = status == 0
      good = everywhere(good)
      if (.not. good) call say_what_is_wrong('no memory for the layers'' values; give a smaller --width or --batch')
      if (good) good = learner_open(l, g%comm, net, whole_of('seed'), strategy)
      if (good) call print_model()
   end function

   ! Whether it is so on all ranks.
   logical function everywhere(here)
      logical, intent(in) :: here

      call MPI_Allreduce(here, everywhere, 1, MPI_LOGICAL, MPI_LAND, g%comm)
   end function

   subroutine print_model()
      integer(int64) :: parameters, state, views, most(2)
      integer :: i

      parameters = sum(int(net%neurons(:net%layers - 1) + 1, int64) * net%neurons(1:))
      call learner_bytes(l, state, views)
      call MPI_Allreduce([state, views], most, 2, MPI_INTEGER8, MPI_MAX, g%comm)
      if (g%rank /= 0) return
      print '(2(a, i0), *(a, i0))', 'surrogate   ', parameters, ' parameters: ', net%neurons(0), &
         (' x ', net%neurons(i), i=1, net%layers)
      print '(2(a, i0))', 'memory      bytes per rank: parameters, gradients and moments ', most(1), ', views ', most(2)
   end subroutine

#ifndef SW_PLAIN
   logical function open_checkpoint() result(good)
      character(:), allocatable :: path, why
      character(200) :: text

      write (text, '(7(a, i0), a, es8.2)') 'nx ', g%nx, ', ny ', g%ny, ', updates ', whole_of('updates'), ', batch ', &
         whole_of('batch'), ', width ', whole_of('width'), ', layers ', whole_of('layers'), &
         ', seed ', whole_of('seed'), ', lr ', number_of('lr')
      good = saver_open(s, l, f, g, text_of('checkpoint'), whole_of('every'), trim(text), step, path, why)
      if (why /= '') call say_what_is_wrong(why)
      if (good .and. path /= '' .and. g%rank == 0) print '(3a, i0)', 'resumed     ', path, ': step ', step
   end function
#endif

   subroutine close_all()
#ifndef SW_PLAIN
      call saver_close(s)
#endif
      if (trains) call learner_close(l)
      call grid_close(g)
   end subroutine

   integer function simulate() result(status)
      real(dp) :: started
      integer :: first
      logical :: good

      good = .true.
      first = step
      started = MPI_Wtime()
      do while (good .and. step < whole_of('steps') .and. stopped == 0)
         step = step + 1
         good = time_step()
      end do
      seconds(1) = MPI_Wtime() - started
      status = 1
      if (.not. good) return
      if (g%rank == 0) print '(a, i0, 3(a, f8.3))', 'steps       ', step - first, ' in', seconds(1), &
         ' s, of which the term', seconds(2), ', training', seconds(3)
      if (is_set('exact')) call print_hashes()
      status = 0
#ifndef SW_PLAIN
      if (stopped /= 0) status = STATUS_OF_STOPPED
      if (stopped /= 0 .and. g%rank == 0) print '(a, i0, a)', 'stopped by signal ', stopped, &
         '; the same command resumes there'
#endif
      if (trains .and. stopped == 0) call try_surrogate()
   end function

   logical function time_step() result(good)
      real(dp) :: sums(3), all(3), started
      integer :: update

      call flow_prepare(f, g)
      started = MPI_Wtime()
      call flow_term(f, g)
      seconds(2) = seconds(2) + MPI_Wtime() - started
      started = MPI_Wtime()
      sums(3) = 0
      do update = 1, whole_of('updates')
         call train(update, sums(3))
      end do
      seconds(3) = seconds(3) + MPI_Wtime() - started
      call flow_advance(f, g)
      sums(1:2) = flow_sums(f, g)
      call MPI_Allreduce(sums, all, 3, MPI_DOUBLE_PRECISION, MPI_SUM, g%comm)
      good = all(2) <= huge(all) ! not so for a NaN
      if (good) call print_step(all)
      if (.not. good) call say_what_is_wrong('the energy of the flow is not finite')
#ifndef SW_PLAIN
      if (good) good = saver_step(s, l, step, step == whole_of('steps'), stopped)
#endif
   end function

   ! One optimizer step on cells drawn from the basin as it is. The learning rate falls with the root of the time steps.
   subroutine train(update, loss)
      integer, intent(in) :: update
      real(dp), intent(inout) :: loss
      real(dp) :: part
      integer :: n

      call samples_draw(f, g, whole_of('seed'), step, update, whole_of('batch'), net%x(0)%of, y, n)
      call learner_train(l, net, y, n, whole_of('batch'), number_of('lr') / sqrt(1 + step / 50d0), part)
      loss = loss + part / whole_of('updates')
   end subroutine

   subroutine print_step(sums)
      real(dp), intent(in) :: sums(3) ! volume, energy, loss
      character(30) :: line

      if (g%rank /= 0) return
      line = ''
      if (trains) write (line, '(a, es10.4)') ' | loss ', sums(3)
      if (mod(step, whole_of('report')) == 0) print '(a, i7, a, es20.14, a, es11.5, a)', 'step ', step, &
         ' | volume ', sums(1), ' | energy ', sums(2), trim(line)
      if (trains .and. is_set('exact')) print '(a, i0, 3a, es22.15)', 'exact step ', step, ' loss ', &
         bits(transfer(sums(3), 0_int64)), ' = ', sums(3)
   end subroutine

   subroutine print_hashes()
      integer(int64) :: hash, of_ranks

      of_ranks = flow_hash(f, g)
      call MPI_Allreduce(of_ranks, hash, 1, MPI_INTEGER8, MPI_BXOR, g%comm)
      if (g%rank == 0) print '(2a)', 'exact fields ', bits(hash)
      if (.not. trains) return
      hash = learner_hash(l)
      if (g%rank == 0) print '(2a)', 'exact parameters ', bits(hash)
   end subroutine

   pure character(16) function bits(word)
      integer(int64), intent(in) :: word
      character(16), parameter :: digits = '0123456789abcdef'
      integer :: i, nibble

      do i = 1, 16
         nibble = int(iand(ishft(word, 4 * i - 64), 15_int64))
         bits(i:i) = digits(nibble + 1:nibble + 1)
      end do
   end function

   subroutine try_surrogate()
      type(network) :: of_all_cells

      if (.not. everywhere(network_open(of_all_cells, whole_of('layers'), whole_of('width'), g%n * g%m, .false.))) then
         call say_what_is_wrong('no memory to try the surrogate on all cells; give --test 0')
         return
      end if
      if (is_set('test')) call trial_unseen(f, g, l, of_all_cells, whole_of('test'))
      if (is_set('compare')) call trial_in_place(f, g, l, of_all_cells, whole_of('compare'))
   end subroutine
end program
