! The command line as a table: each option is a row with a default, and a range or a text. All ranks read the same words
! and come to the same verdict; rank 0 says what is wrong.
module sw_options
   use, intrinsic :: iso_fortran_env, only: error_unit
   use mpi_f08
   implicit none
   private
   public :: options_read, options_print, number_of, whole_of, text_of, is_set, say_what_is_wrong, TEXT_LENGTH

   integer, parameter :: dp = kind(1d0), TEXT_LENGTH = 1000
   integer, parameter :: IS_WHOLE = 1, IS_NUMBER = 2, IS_TEXT = 3, IS_FLAG = 4

   type :: row
      character(12) :: name = ''
      integer :: kind = IS_FLAG
      real(dp) :: least = 0, most = 0, value = 0
      logical :: with_fsdp = .false. ! only the program with the module has it
      character(100) :: help = ''
      character(80) :: choices = ''  ! of a text, if not all are good: the first is the default
   end type

   type(row) :: rows(20)
   character(TEXT_LENGTH) :: texts(size(rows)) = ''
   character(40) :: program_name = ''
   integer :: n_rows = 0

contains

   ! ---- what there is

   subroutine fill_table(with_fsdp)
      logical, intent(in) :: with_fsdp
      type(row), allocatable :: left(:)

      n_rows = 0
      call whole('nx', 64, 8, 30000, 'cells of the basin from west to east')
      call whole('ny', 64, 8, 30000, 'cells from south to north')
      call whole('steps', 200, 0, 1000000000, 'time steps with training, since the beginning of the run')
      call whole('updates', 4, 0, 1000000, 'optimizer steps per time step; 0: the solver alone')
      call whole('batch', 512, 1, 1000000, 'cells per optimizer step, drawn from those of all ranks')
      call whole('width', 64, 1, 32768, 'neurons of a hidden layer of the surrogate')
      call whole('layers', 2, 1, 64, 'hidden layers')
      call add(row('lr', IS_NUMBER, 1e-9_dp, 1.0_dp, 5e-3_dp, .false., 'learning rate of AdamW at the beginning'))
      call whole('seed', 1, 0, 1000000000, 'of initial weights and drawn cells')
      call whole('test', 10, 0, 1000000000, 'time steps after the training on which the surrogate is tested')
      call whole('compare', 0, 0, 1000000000, 'time steps after that, with the term and with the surrogate instead')
      call whole('report', 20, 1, 1000000000, 'time steps from one line of output to the next')
      call add(row('exact', IS_FLAG, help='prints the bits of each loss, and sums of bits of parameters and fields'))
      call add(row('strategy', IS_TEXT, with_fsdp=.true., help='what is divided over the ranks', &
                   choices='full_shard shard_grad_op shard_optim no_shard hybrid_shard hybrid_shard_zero2'))
      call add(row('checkpoint', IS_TEXT, with_fsdp=.true., &
                   help='folder to save in, and to resume from where a run has saved there'))
      call whole('every', 100, 1, 1000000000, 'time steps from one checkpoint to the next', .true.)
      call add(row('help', IS_FLAG, help='prints this'))
      if (.not. with_fsdp) then
         left = pack(rows(:n_rows), .not. rows(:n_rows)%with_fsdp)
         n_rows = size(left)
         rows(:n_rows) = left
      end if
   end subroutine

   subroutine whole(name, value, least, most, help, with_fsdp)
      character(*), intent(in) :: name, help
      integer, intent(in) :: value, least, most
      logical, intent(in), optional :: with_fsdp
      type(row) :: r

      r = row(name, IS_WHOLE, real(least, dp), real(most, dp), real(value, dp), .false., help)
      if (present(with_fsdp)) r%with_fsdp = with_fsdp
      call add(r)
   end subroutine

   subroutine add(r)
      type(row), intent(in) :: r

      n_rows = n_rows + 1
      rows(n_rows) = r
      texts(n_rows) = r%choices(:scan(r%choices, ' ') - 1)
   end subroutine

   ! ---- reading

   logical function options_read(name, with_fsdp) result(good)
      character(*), intent(in) :: name
      logical, intent(in) :: with_fsdp
      character(TEXT_LENGTH) :: word
      integer :: i, r, equals

      program_name = name
      call fill_table(with_fsdp)
      good = .true.
      i = 1
      do while (good .and. i <= command_argument_count())
         call get_command_argument(i, word)
         equals = index(word, '=')
         r = find(word(:merge(equals - 1, len_trim(word), equals > 0)))
         if (r == 0) then
            good = wrong("option '" // shown(word) // "' is unknown; --help lists the options")
         else if (rows(r)%kind == IS_FLAG) then
            good = equals == 0
            rows(r)%value = 1
            if (.not. good) good = wrong("option '" // shown(word) // "' takes no value; --help lists the options")
         else if (equals > 0) then
            good = read_value(r, word(equals + 1:))
         else if (i == command_argument_count()) then
            good = wrong(trim(word) // ' needs a value; --help lists the options')
         else
            i = i + 1
            call get_command_argument(i, word)
            good = read_value(r, word)
         end if
         i = i + 1
      end do
   end function

   ! The row of `--name`; 0 if there is none.
   integer function find(word)
      character(*), intent(in) :: word

      find = 0
      if (len(word) > 2) then
         if (word(:2) == '--') find = findloc(rows(:n_rows)%name, word(3:), 1)
      end if
   end function

   logical function read_value(r, word) result(good)
      integer, intent(in) :: r
      character(*), intent(in) :: word
      character(30) :: least, most

      texts(r) = word
      good = .true.
      if (rows(r)%kind == IS_TEXT) then
         if (word == '') good = wrong('--' // trim(rows(r)%name) // ' is empty; --help says what it takes')
         if (good .and. rows(r)%choices /= '') good = index(' ' // rows(r)%choices, ' ' // trim(word) // ' ') > 0
         if (word /= '' .and. .not. good) good = wrong('--' // trim(rows(r)%name) // " is '" // shown(word) // &
                                                       "'; use one of " // rows(r)%choices)
         return
      end if
      good = read_number(word, rows(r)%kind, rows(r)%value)
      if (good) good = rows(r)%value >= rows(r)%least .and. rows(r)%value <= rows(r)%most
      if (good) return
      if (rows(r)%kind == IS_WHOLE) then
         write (least, '(i0)') nint(rows(r)%least)
         write (most, '(i0)') nint(rows(r)%most)
      else
         write (least, '(es7.1)') rows(r)%least
         write (most, '(es7.1)') rows(r)%most
      end if
      good = wrong('--' // trim(rows(r)%name) // " is '" // shown(word) // "'; give a " // &
                   trim(merge('whole number', 'number      ', rows(r)%kind == IS_WHOLE)) // ' from ' // trim(least) // &
                   ' to ' // most)
   end function

   logical function read_number(word, kind, value) result(good)
      character(*), intent(in) :: word
      integer, intent(in) :: kind
      real(dp), intent(inout) :: value
      character(20) :: allowed
      integer :: status

      allowed = merge('0123456789          ', '0123456789.eEdD+-   ', kind == IS_WHOLE)
      good = len_trim(word) > 0 .and. len_trim(word) <= 25 .and. verify(trim(word), trim(allowed)) == 0
      if (.not. good) return
      read (word, '(f25.0)', iostat=status) value
      good = status == 0
   end function

   pure function shown(word)
      character(*), intent(in) :: word
      character(:), allocatable :: shown

      shown = trim(word(:min(len(word), 60)))
   end function

   ! ---- what they say

   real(dp) function number_of(name)
      character(*), intent(in) :: name

      number_of = rows(find('--' // name))%value
   end function

   integer function whole_of(name)
      character(*), intent(in) :: name

      whole_of = nint(number_of(name))
   end function

   logical function is_set(name)
      character(*), intent(in) :: name

      is_set = number_of(name) > 0
   end function

   ! '' if the option was not given
   function text_of(name)
      character(*), intent(in) :: name
      character(:), allocatable :: text_of

      text_of = trim(texts(find('--' // name)))
   end function

   subroutine options_print()
      integer :: r
      character(12) :: name
      character(120) :: fallback

      print '(3a)', 'usage: mpirun -n RANKS ', trim(program_name), ' [OPTION...]'
      do r = 1, n_rows
         name = rows(r)%name
         if (rows(r)%kind /= IS_FLAG) name = trim(name) // ' X'
         fallback = ''
         if (rows(r)%kind == IS_WHOLE) write (fallback, '(a, i0, a)') ' (', nint(rows(r)%value), ')'
         if (rows(r)%kind == IS_NUMBER) write (fallback, '(a, f0.4, a)') ' (0', rows(r)%value, ')'
         if (rows(r)%choices /= '') fallback = ': ' // trim(rows(r)%choices) // ' (' // trim(texts(r)) // ')'
         print '(5a)', '  --', name, '  ', trim(rows(r)%help), trim(fallback)
      end do
   end subroutine

   ! ---- errors

   ! Once, though every rank comes here.
   subroutine say_what_is_wrong(text)
      character(*), intent(in) :: text
      integer :: rank

      call MPI_Comm_rank(MPI_COMM_WORLD, rank)
      if (rank == 0) write (error_unit, '(3a)') trim(program_name), ': ', trim(text)
   end subroutine

   logical function wrong(text)
      character(*), intent(in) :: text

      call say_what_is_wrong(text)
      wrong = .false.
   end function
end module
