! Checkpoints of the flow and of the surrogate together, which any number of ranks can resume.
module sw_checkpoint
   use, intrinsic :: iso_c_binding
   use fsdp
   use sw_grid
   use sw_flow
   use sw_learner
   implicit none
   private
   public :: saver, saver_open, saver_step, saver_close

   integer, parameter, public :: STATUS_OF_STOPPED = FSDP_STOP_EXIT_STATUS

   type :: saver
      type(fsdp_checkpoint) :: checkpoint
      character(:), allocatable :: text
      integer :: every = 0 ! 0: nothing is saved
   end type

contains

   ! Resumes in `folder` if a run has saved there; `step` is then the last step that it had taken. `text` says what is
   ! computed: a checkpoint of something else is refused. False, and `why` says so.
   logical function saver_open(s, l, f, g, folder, every, text, step, path, why) result(good)
      type(saver), intent(inout) :: s
      type(learner), intent(in) :: l
      type(flow), intent(in), target :: f
      type(grid), intent(in) :: g
      character(*), intent(in) :: folder, text
      integer, intent(in) :: every
      integer, intent(inout) :: step
      character(:), allocatable, intent(out) :: path, why
      type(fsdp_checkpoint_state) :: state
      integer :: status

      s%text = text
      path = ''
      why = ''
      call fsdp_stop_watch(status=status) ! a signal while it loads is obeyed behind the first step
      if (status == FSDP_OK) call fsdp_checkpoint_open(l%model, folder, s%checkpoint, l%optimizer, status=status)
      if (status == FSDP_OK) s%every = every
      if (status == FSDP_OK) call add_fields(s%checkpoint, f, g, status)
      if (status == FSDP_OK) call fsdp_checkpoint_latest(l%ctx, folder, path, status)
      if (status == FSDP_OK .and. path /= '') then
         call fsdp_checkpoint_restore(s%checkpoint, path, state, status=status)
         if (status == FSDP_OK .and. fsdp_string(state%text) /= text) then
            why = path // ' is of a run with ' // fsdp_string(state%text) // ', not ' // text // &
                  '; use the same options, or another folder'
         end if
         step = int(state%step)
      end if
      good = status == FSDP_OK .and. why == ''
   end function

   ! begin fields
   ! Each field without the layers around it: a box of the basin's array, whose rows are not contiguous here.
   subroutine add_fields(checkpoint, f, g, status)
      type(fsdp_checkpoint), intent(in) :: checkpoint
      type(flow), intent(in), target :: f
      type(grid), intent(in) :: g
      integer, intent(out) :: status
      type(fsdp_box) :: box
      integer(c_size_t) :: basin(2)

      basin = [g%ny, g%nx] ! as C has it, as in the box
      box%offset(:2) = [g%south_of, g%west_of]
      box%extent(:2) = [g%m, g%n]
      box%stride(:2) = [g%n + 2 * HALO, 1]
      call fsdp_checkpoint_add(checkpoint, 'h', FSDP_F64, basin, c_loc(f%h(1, 1)), box, status)
      if (status == FSDP_OK) call fsdp_checkpoint_add(checkpoint, 'u', FSDP_F64, basin, c_loc(f%u(1, 1)), box, status)
      if (status == FSDP_OK) call fsdp_checkpoint_add(checkpoint, 'v', FSDP_F64, basin, c_loc(f%v(1, 1)), box, status)
   end subroutine
   ! end fields

   ! Behind each step: saves where it is time to, or where a signal has told a rank to stop, as a batch system does;
   ! `stopped` is then its number, on all ranks.
   logical function saver_step(s, l, step, last, stopped) result(good)
      type(saver), intent(in) :: s
      type(learner), intent(in) :: l
      integer, intent(in) :: step
      logical, intent(in) :: last
      integer, intent(out) :: stopped
      type(fsdp_checkpoint_state) :: state
      integer :: status

      stopped = 0
      good = .true.
      if (s%every == 0) return
      call fsdp_stop_agree(l%ctx, stopped, status)
      if (last) stopped = 0 ! there is nothing left to stop
      if (status == FSDP_OK .and. (last .or. stopped /= 0 .or. mod(step, s%every) == 0)) then
         state%step = step
         call fsdp_set_text(state%text, s%text)
         call fsdp_checkpoint_save(s%checkpoint, state, status)
      end if
      good = status == FSDP_OK
   end function

   subroutine saver_close(s)
      type(saver), intent(inout) :: s
      integer :: status

      if (.not. fsdp_is_null(s%checkpoint)) call fsdp_checkpoint_close(s%checkpoint, status)
   end subroutine
end module
