! Nodes, plans of who runs where on them, and what has been bound: fsdp/topology.h. Indices and ranks count from 0.
module fsdp_topologies
   use, intrinsic :: iso_c_binding
   use fsdp_constants
   use fsdp_base
   implicit none
   private

   public :: fsdp_binding, fsdp_comm_order_by_node, fsdp_deviation_name, fsdp_deviation_text, fsdp_gpu_health_read
   public :: fsdp_local_rank_look, fsdp_mask_count, fsdp_mask_has, fsdp_mask_read, fsdp_mask_text, fsdp_plan
   public :: fsdp_plan_none, fsdp_source_name, fsdp_topology_close, fsdp_topology_node, fsdp_topology_open

   type, extends(any_handle), public :: fsdp_topology
   end type

   type, bind(C), public :: fsdp_mask
      integer(c_int64_t) :: word(FSDP_MASK_WORDS) = 0
   end type

   type, bind(C), public :: fsdp_domain
      type(fsdp_mask)    :: threads
      integer(c_int64_t) :: bytes = 0
      integer(c_int)     :: number = 0
      integer(c_int)     :: package = 0
      integer(c_int)     :: numa = 0
      integer(c_int)     :: cache = 0
      integer(c_int)     :: level = 0
      integer(c_int)     :: kind = 0
   end type

   type, bind(C), public :: fsdp_core_kind
      character(kind=c_char) :: name(32) = c_null_char
      integer(c_size_t)      :: n_cores = 0
   end type

   type, bind(C), public :: fsdp_memory_node
      integer(c_int)         :: number = 0
      integer(c_int64_t)     :: bytes = 0
      character(kind=c_char) :: kind(16) = c_null_char
      type(fsdp_mask)        :: threads
      integer(c_int)         :: numa = 0
   end type

   type, bind(C), public :: fsdp_gpu
      character(kind=c_char) :: address(FSDP_ADDRESS_BYTES) = c_null_char
      integer(c_int)         :: ordinal = 0
      integer(c_int)         :: vendor = 0
      integer(c_int)         :: device = 0
      character(kind=c_char) :: name(64) = c_null_char
      character(kind=c_char) :: uuid(48) = c_null_char
      type(fsdp_mask)        :: threads
      integer(c_int)         :: package = 0
      integer(c_int)         :: numa = 0
      integer(c_int)         :: smi = 0
      integer(c_int64_t)     :: bytes = 0
      integer(c_int64_t)     :: hive = 0
   end type

   type, bind(C), public :: fsdp_nic
      character(kind=c_char) :: address(FSDP_ADDRESS_BYTES) = c_null_char
      character(kind=c_char) :: name(32) = c_null_char
      integer(c_int)         :: fabric = 0
      type(fsdp_mask)        :: threads
      integer(c_int)         :: package = 0
      integer(c_int)         :: numa = 0
   end type

   type, bind(C), public :: fsdp_link
      integer(c_int)     :: type = 0
      integer(c_int64_t) :: hops = 0
      integer(c_int64_t) :: weight = 0
      integer(c_int64_t) :: min_bandwidth = 0
      integer(c_int64_t) :: max_bandwidth = 0
   end type

   type, bind(C), public :: fsdp_source
      integer(c_int)         :: present = 0
      character(kind=c_char) :: text(FSDP_REASON_BYTES) = c_null_char
   end type

   type, bind(C), public :: fsdp_node
      character(kind=c_char) :: name(64) = c_null_char
      integer(c_int)         :: is_here = 0
      type(fsdp_mask)        :: threads
      integer(c_size_t)      :: n_packages = 0
      type(c_ptr)            :: packages = c_null_ptr
      integer(c_size_t)      :: n_numas = 0
      type(c_ptr)            :: numas = c_null_ptr
      integer(c_size_t)      :: n_caches = 0
      type(c_ptr)            :: caches = c_null_ptr
      integer(c_size_t)      :: n_cores = 0
      type(c_ptr)            :: cores = c_null_ptr
      integer(c_size_t)      :: n_kinds = 0
      type(c_ptr)            :: kinds = c_null_ptr
      integer(c_size_t)      :: n_memories = 0
      type(c_ptr)            :: memories = c_null_ptr
      integer(c_size_t)      :: n_gpus = 0
      type(c_ptr)            :: gpus = c_null_ptr
      type(c_ptr)            :: links = c_null_ptr
      integer(c_size_t)      :: n_nics = 0
      type(c_ptr)            :: nics = c_null_ptr
      real(c_double)         :: cpu_quota = 0
      type(fsdp_source)      :: sources(FSDP_N_SOURCES)
   end type

   type, bind(C), public :: fsdp_visible_gpu
      character(kind=c_char) :: address(FSDP_ADDRESS_BYTES) = c_null_char
      integer(c_int)         :: ordinal = 0
   end type

   type, bind(C), public :: fsdp_local_rank
      integer(c_int)         :: rank = 0
      integer(c_int)         :: n_visible = 0
      integer(c_int)         :: device = 0
      integer(c_int)         :: at_odds = 0
      type(fsdp_mask)        :: threads
      type(fsdp_mask)        :: memory
      type(fsdp_visible_gpu) :: visible(FSDP_MOST_GPUS)
   end type

   type, bind(C), public :: fsdp_place
      integer(c_int)         :: gpu = 0
      integer(c_int)         :: device = 0
      type(fsdp_mask)        :: threads
      integer(c_int)         :: numa = 0
      integer(c_int)         :: nic = 0
      integer(c_int)         :: spare = 0
      integer(c_int)         :: deviations = 0
      character(kind=c_char) :: gpu_reason(FSDP_REASON_BYTES) = c_null_char
      character(kind=c_char) :: cores_reason(FSDP_REASON_BYTES) = c_null_char
      character(kind=c_char) :: memory_reason(FSDP_REASON_BYTES) = c_null_char
      character(kind=c_char) :: nic_reason(FSDP_REASON_BYTES) = c_null_char
   end type

   type, bind(C), public :: fsdp_gpu_health
      real(c_double) :: used_bytes = 0
      real(c_double) :: total_bytes = 0
      real(c_double) :: busy_percent = 0
      real(c_double) :: clock_mhz = 0
      real(c_double) :: power_watts = 0
      real(c_double) :: temperature_celsius = 0
   end type

   interface
      integer(c_int) function c_topology_open(file, topology) bind(C, name="fsdp_topology_open")
         import :: c_int, c_ptr
         type(c_ptr), value       :: file
         type(c_ptr), intent(out) :: topology
      end function

      subroutine c_topology_close(topology) bind(C, name="fsdp_topology_close")
         import :: c_ptr
         type(c_ptr), value :: topology
      end subroutine

      type(c_ptr) function c_topology_node(topology) bind(C, name="fsdp_topology_node")
         import :: c_ptr
         type(c_ptr), value :: topology
      end function

      integer(c_int) function c_gpu_health_read(topology, gpu, health) bind(C, name="fsdp_gpu_health_read")
         import :: c_int, c_ptr, c_size_t, fsdp_gpu_health
         type(c_ptr), value                 :: topology
         integer(c_size_t), value           :: gpu
         type(fsdp_gpu_health), intent(out) :: health
      end function

      integer(c_int) function c_local_rank_look(mine) bind(C, name="fsdp_local_rank_look")
         import :: c_int, fsdp_local_rank
         type(fsdp_local_rank), intent(inout) :: mine
      end function

      integer(c_int) function c_plan(node, ranks, n, places) bind(C, name="fsdp_plan")
         import :: c_int, c_size_t, fsdp_local_rank, fsdp_node, fsdp_place
         type(fsdp_node), intent(in)       :: node
         type(fsdp_local_rank), intent(in) :: ranks(*)
         integer(c_size_t), value          :: n
         type(fsdp_place), intent(inout)   :: places(*)
      end function

      integer(c_int) function c_plan_none(node, ranks, n, places) bind(C, name="fsdp_plan_none")
         import :: c_int, c_size_t, fsdp_local_rank, fsdp_node, fsdp_place
         type(fsdp_node), intent(in)       :: node
         type(fsdp_local_rank), intent(in) :: ranks(*)
         integer(c_size_t), value          :: n
         type(fsdp_place), intent(inout)   :: places(*)
      end function

      type(c_ptr) function c_binding(ctx) bind(C, name="fsdp_binding")
         import :: c_ptr
         type(c_ptr), value :: ctx
      end function

      subroutine c_mask_text(mask, text, size) bind(C, name="fsdp_mask_text")
         import :: c_char, c_size_t, fsdp_mask
         type(fsdp_mask), intent(in)         :: mask
         character(kind=c_char), intent(out) :: text(*)
         integer(c_size_t), value            :: size
      end subroutine

      integer(c_int) function c_mask_read(text, mask) bind(C, name="fsdp_mask_read")
         import :: c_char, c_int, fsdp_mask
         character(kind=c_char), intent(in) :: text(*)
         type(fsdp_mask), intent(out)       :: mask
      end function

      pure integer(c_int) function c_mask_count(mask) bind(C, name="fsdp_mask_count")
         import :: c_int, fsdp_mask
         type(fsdp_mask), intent(in) :: mask
      end function

      pure integer(c_int) function c_mask_has(mask, number) bind(C, name="fsdp_mask_has")
         import :: c_int, fsdp_mask
         type(fsdp_mask), intent(in) :: mask
         integer(c_int), value       :: number
      end function

      type(c_ptr) function c_deviation_name(deviation) bind(C, name="fsdp_deviation_name")
         import :: c_int, c_ptr
         integer(c_int), value :: deviation
      end function

      type(c_ptr) function c_deviation_text(deviation) bind(C, name="fsdp_deviation_text")
         import :: c_int, c_ptr
         integer(c_int), value :: deviation
      end function

      type(c_ptr) function c_source_name(source) bind(C, name="fsdp_source_name")
         import :: c_int, c_ptr
         integer(c_int), value :: source
      end function
   end interface

   interface
      ! Of communicators.c: C's own function takes C's handles.
      integer(c_int) function c_comm_order_by_node(comm, ordered) bind(C, name="fsdpi_comm_order_by_node_f")
         import :: c_int
         integer(c_int), value       :: comm
         integer(c_int), intent(out) :: ordered
      end function
   end interface

   interface fsdp_comm_order_by_node
      module procedure order_by_node ! fsdp_mpi_f08 adds the one for type(MPI_Comm)
   end interface

contains

   ! Of hwloc's XML in `file`; or of the file that FSDP_TOPOLOGY names; or of this machine.
   subroutine fsdp_topology_open(topology, file, status)
      type(fsdp_topology), intent(out) :: topology
      character(*), intent(in), optional :: file
      integer, intent(out), optional :: status
      character(kind=c_char, len=:), allocatable, target :: name
      type(c_ptr) :: given, opened
      integer(c_int) :: code

      given = c_null_ptr
      if (present(file)) then
         name = c_text(file)
         given = c_loc(name)
      end if
      opened = c_null_ptr
      code = c_topology_open(given, opened)
      call set_handle(topology, opened, topology)
      call finish(code, 'fsdp_topology_open', status=status)
   end subroutine

   subroutine fsdp_topology_close(topology)
      type(fsdp_topology), intent(inout) :: topology

      call c_topology_close(address(topology))
      call set_handle(topology, c_null_ptr, topology)
   end subroutine

   ! The node, until the topology is closed; null for one that is not open. Its arrays are addresses:
   ! c_f_pointer(node%cores, cores, [node%n_cores]).
   function fsdp_topology_node(topology) result(node)
      type(fsdp_topology), intent(in) :: topology
      type(fsdp_node), pointer :: node
      type(c_ptr) :: memory

      nullify (node)
      memory = c_topology_node(address(topology))
      if (c_associated(memory)) call c_f_pointer(memory, node)
   end function

   subroutine fsdp_gpu_health_read(topology, gpu, health, status)
      type(fsdp_topology), intent(in) :: topology
      integer, intent(in) :: gpu
      type(fsdp_gpu_health), intent(out) :: health
      integer, intent(out), optional :: status

      call finish(c_gpu_health_read(address(topology), int(gpu, c_size_t), health), 'fsdp_gpu_health_read', &
                  status=status)
   end subroutine

   subroutine fsdp_local_rank_look(mine, status)
      type(fsdp_local_rank), intent(out) :: mine
      integer, intent(out), optional :: status

      call finish(c_local_rank_look(mine), 'fsdp_local_rank_look', status=status)
   end subroutine

   subroutine fsdp_plan(node, ranks, places, status)
      type(fsdp_node), intent(in) :: node
      type(fsdp_local_rank), intent(in) :: ranks(:)
      type(fsdp_place), intent(inout) :: places(:)
      integer, intent(out), optional :: status

      if (size(places) < size(ranks)) then
         call refuse('there are fewer places than ranks', 'fsdp_plan', status=status)
      else
         call finish(c_plan(node, ranks, size(ranks, kind=c_size_t), places), 'fsdp_plan', status=status)
      end if
   end subroutine

   subroutine fsdp_plan_none(node, ranks, places, status)
      type(fsdp_node), intent(in) :: node
      type(fsdp_local_rank), intent(in) :: ranks(:)
      type(fsdp_place), intent(inout) :: places(:)
      integer, intent(out), optional :: status

      if (size(places) < size(ranks)) then
         call refuse('there are fewer places than ranks', 'fsdp_plan_none', status=status)
      else
         call finish(c_plan_none(node, ranks, size(ranks, kind=c_size_t), places), 'fsdp_plan_none', status=status)
      end if
   end subroutine

   function fsdp_binding(ctx) result(text)
      type(fsdp_context), intent(in) :: ctx
      character(:), allocatable :: text

      text = fsdp_string(c_binding(address(ctx)))
   end function

   ! The caller frees `ordered` with MPI_Comm_free().
   subroutine order_by_node(communicator, ordered, status)
      integer, intent(in) :: communicator
      integer, intent(out) :: ordered
      integer, intent(out), optional :: status

      call finish(c_comm_order_by_node(communicator, ordered), 'fsdp_comm_order_by_node', status=status)
   end subroutine

   function fsdp_mask_text(mask) result(text)
      type(fsdp_mask), intent(in) :: mask
      character(:), allocatable :: text
      character(kind=c_char) :: characters(FSDP_MASK_TEXT_BYTES)

      call c_mask_text(mask, characters, size(characters, kind=c_size_t))
      text = fsdp_string(characters)
   end function

   subroutine fsdp_mask_read(text, mask, status)
      character(*), intent(in) :: text
      type(fsdp_mask), intent(out) :: mask
      integer, intent(out), optional :: status

      call finish(c_mask_read(c_text(text), mask), 'fsdp_mask_read', status=status)
   end subroutine

   pure integer function fsdp_mask_count(mask)
      type(fsdp_mask), intent(in) :: mask

      fsdp_mask_count = c_mask_count(mask)
   end function

   pure logical function fsdp_mask_has(mask, number)
      type(fsdp_mask), intent(in) :: mask
      integer, intent(in) :: number

      fsdp_mask_has = c_mask_has(mask, number) /= 0
   end function

   function fsdp_deviation_name(deviation) result(text)
      integer, intent(in) :: deviation
      character(:), allocatable :: text

      text = fsdp_string(c_deviation_name(deviation))
   end function

   function fsdp_deviation_text(deviation) result(text)
      integer, intent(in) :: deviation
      character(:), allocatable :: text

      text = fsdp_string(c_deviation_text(deviation))
   end function

   function fsdp_source_name(source) result(text)
      integer, intent(in) :: source
      character(:), allocatable :: text

      text = fsdp_string(c_source_name(source))
   end function
end module
