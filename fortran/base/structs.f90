! The structs of the headers in include/fsdp, which say what each member means, and what a program's own functions are.
!
! Members are C's: arrays of extents have the last dimension of Fortran's array first, and tensors count from 0. What is
! not set is 0, as in C; options begin with their fsdp_..._init(). Structs of fsdp/topology.h are in topology.f90.
module fsdp_structs
   use, intrinsic :: iso_c_binding
   use fsdp_constants, only: FSDP_CHECKPOINT_TEXT_BYTES, FSDP_MAX_DIMS, FSDP_N_MEMORY_KINDS
   implicit none
   private

   ! fsdp/config.h, fsdp/context.h, fsdp/algorithms.h

   type, bind(C), public :: fsdp_config
      integer(c_size_t)  :: size = 0
      type(c_funptr)     :: log = c_null_funptr
      type(c_ptr)        :: log_state = c_null_ptr
      integer(c_int)     :: log_level = 0
      integer(c_int)     :: verify = 0
      integer(c_int)     :: timeout_s = 0
      integer(c_int)     :: isa = 0
      integer(c_int64_t) :: message_bytes = 0
      integer(c_int64_t) :: chunk_bytes = 0
      integer(c_int64_t) :: staging_bytes = 0
      integer(c_int)     :: views_in_flight = 0
      integer(c_int)     :: prefetch = 0
      integer(c_int64_t) :: bucket_bytes = 0
      integer(c_int)     :: node_size = 0
      integer(c_int)     :: node_group = 0
      type(c_ptr)        :: shm_dir = c_null_ptr
      integer(c_int64_t) :: node_memory = 0
      integer(c_int)     :: cma = 0
      integer(c_int)     :: progress = 0
      integer(c_int)     :: progress_cpu = 0
      integer(c_int)     :: bind = 0
      integer(c_int)     :: device = 0
      integer(c_int)     :: gpu_aware_mpi = 0
      type(c_ptr)        :: topology = c_null_ptr
      integer(c_int)     :: algo_allgather = 0
      integer(c_int)     :: algo_reduce_scatter = 0
      integer(c_int)     :: algo_allreduce = 0
      integer(c_int)     :: algo_broadcast = 0
      integer(c_int)     :: algo_reduce = 0
      integer(c_int)     :: algo_alltoall = 0
      type(c_ptr)        :: tuning_file = c_null_ptr
      integer(c_int)     :: checkpoint_lock = 0
      type(c_ptr)        :: trace = c_null_ptr
      integer(c_int)     :: bind_keep = 0
      integer(c_int64_t) :: small_bytes = 0
      integer(c_int)     :: record = 0
      type(c_ptr)        :: record_dir = c_null_ptr
      integer(c_int)     :: stall_s = 0
      type(c_ptr)        :: checkpoint_cache = c_null_ptr
   end type

   type, bind(C), public :: fsdp_memory
      integer(c_size_t) :: current(FSDP_N_MEMORY_KINDS) = 0
      integer(c_size_t) :: current_total = 0
      integer(c_size_t) :: peak_total = 0
      integer(c_size_t) :: device = 0
   end type

   type, bind(C), public :: fsdp_cluster
      integer(c_int) :: nodes = 0
      integer(c_int) :: ranks_per_node = 0
      real(c_double) :: latency_s = 0
      real(c_double) :: bytes_per_s = 0
   end type

   ! fsdp/mesh.h

   type, bind(C), public :: fsdp_axis
      type(c_ptr)    :: name = c_null_ptr
      integer(c_int) :: size = 0
   end type

   ! fsdp/model.h

   type, bind(C), public :: fsdp_tensor
      type(c_ptr)        :: name = c_null_ptr
      integer(c_size_t)  :: n_dims = 0
      integer(c_size_t)  :: shape(FSDP_MAX_DIMS) = 0
      integer(c_int)     :: dtype = 0
      integer(c_int)     :: fill = 0
      real(c_double)     :: a = 0
      real(c_double)     :: b = 0
      integer(c_int)     :: flags = 0
      type(c_ptr)        :: tied_to = c_null_ptr
      type(c_funptr)     :: fill_values = c_null_funptr
      type(c_ptr)        :: fill_state = c_null_ptr
      integer(c_int32_t) :: tp_dim = 0
      integer(c_int32_t) :: tp_blocks = 0
      integer(c_int64_t) :: reserved(5) = 0
   end type

   type, bind(C), public :: fsdp_model_options
      integer(c_size_t)  :: size = 0
      integer(c_int)     :: strategy = 0
      integer(c_int64_t) :: seed = 0
      integer(c_size_t)  :: memory_limit = 0
      integer(c_int)     :: optimizer = 0
      integer(c_int)     :: group_size = 0
      integer(c_int)     :: param_dtype = 0
      integer(c_int)     :: reduce_dtype = 0
      integer(c_int)     :: local_gradients = 0
      integer(c_int)     :: moment_dtype = 0
      integer(c_int)     :: buffer_dtype = 0
      integer(c_int)     :: quantized_params = 0
      real(c_double)     :: gradient_divisor = 0
      integer(c_int)     :: placement = 0
      integer(c_int)     :: fixed_addresses = 0
      integer(c_size_t)  :: n_states = 0
      integer(c_int)     :: unused = 0
      integer(c_int)     :: kept_units = 0
      integer(c_size_t)  :: recorded_passes = 0
      integer(c_size_t)  :: keep_on_node = 0
      type(c_ptr)        :: mesh = c_null_ptr
      type(c_ptr)        :: tensor_axis = c_null_ptr
      type(c_ptr)        :: stage_axis = c_null_ptr
      type(c_ptr)        :: axis_strategies = c_null_ptr
   end type

   type, bind(C), public :: fsdp_model_group
      integer(c_size_t) :: size = 0
      integer(c_size_t) :: granularity = 0
      integer(c_int)    :: optimizer = 0
      integer(c_int)    :: moment_dtype = 0
      integer(c_size_t) :: n_states = 0
   end type

   type, bind(C), public :: fsdp_budget
      integer(c_size_t) :: parameters = 0
      integer(c_size_t) :: bytes(FSDP_N_MEMORY_KINDS) = 0
      integer(c_size_t) :: total = 0
      integer(c_size_t) :: device = 0
      integer(c_size_t) :: shared = 0
      integer(c_size_t) :: unsharded = 0
      integer(c_size_t) :: mean_total = 0
   end type

   ! fsdp/layout.h

   type, bind(C), public :: fsdp_layout
      integer(c_size_t) :: elements = 0
      integer(c_size_t) :: padded = 0
      integer(c_size_t) :: shard = 0
      integer(c_int)    :: size = 0
      integer(c_size_t) :: multiple = 0
      integer(c_size_t) :: granularity = 0
   end type

   type, bind(C), public :: fsdp_interval
      integer(c_size_t) :: tensor = 0
      integer(c_size_t) :: tensor_begin = 0
      integer(c_size_t) :: shard_begin = 0
      integer(c_size_t) :: count = 0
   end type

   ! fsdp/shard.h

   type, bind(C), public :: fsdp_shard
      type(c_ptr)       :: master = c_null_ptr
      type(c_ptr)       :: gradient = c_null_ptr
      integer(c_size_t) :: begin = 0
      integer(c_size_t) :: count = 0
      integer(c_int)    :: dtype = 0
   end type

   ! fsdp/optimizer.h, fsdp/lbfgs.h, fsdp/loss_scaler.h, fsdp/lr_schedule.h

   type, bind(C), public :: fsdp_update
      type(c_ptr)       :: unit = c_null_ptr
      type(c_ptr)       :: tensor = c_null_ptr
      integer(c_size_t) :: index = 0
      integer(c_size_t) :: n_dims = 0
      type(c_ptr)       :: shape = c_null_ptr
      integer(c_size_t) :: begin = 0
      integer(c_size_t) :: count = 0
      integer(c_int)    :: dtype = 0
      integer(c_int)    :: state_dtype = 0
      type(c_ptr)       :: master = c_null_ptr
      type(c_ptr)       :: gradient = c_null_ptr
      integer(c_size_t) :: n_states = 0
      type(c_ptr)       :: states = c_null_ptr
      real(c_double)    :: lr = 0
      real(c_double)    :: weight_decay = 0
      integer(c_size_t) :: step = 0
      type(c_ptr)       :: stream = c_null_ptr
   end type

   type, bind(C), public :: fsdp_optimizer_options
      integer(c_size_t) :: size = 0
      integer(c_int)    :: kind = 0
      real(c_double)    :: lr = 0
      real(c_double)    :: weight_decay = 0
      real(c_double)    :: beta1 = 0
      real(c_double)    :: beta2 = 0
      real(c_double)    :: eps = 0
      real(c_double)    :: momentum = 0
      integer(c_int)    :: nesterov = 0
      integer(c_int)    :: moment_dtype = 0
      type(c_ptr)       :: group = c_null_ptr
      integer(c_size_t) :: n_states = 0
      type(c_funptr)    :: update = c_null_funptr
      type(c_ptr)       :: update_state = c_null_ptr
      type(c_ptr)       :: state_names = c_null_ptr
      real(c_double)    :: muon_scale = 0
   end type

   type, bind(C), public :: fsdp_optimizer_group
      integer(c_size_t) :: size = 0
      real(c_double)    :: lr = 0
      real(c_double)    :: lr_scale = 0
      real(c_double)    :: weight_decay = 0
   end type

   type, bind(C), public :: fsdp_lbfgs_options
      integer(c_size_t) :: size = 0
      integer(c_size_t) :: history = 0
      integer(c_size_t) :: max_iterations = 0
      integer(c_size_t) :: max_evaluations = 0
      real(c_double)    :: lr = 0
      real(c_double)    :: tolerance_gradient = 0
      real(c_double)    :: tolerance_change = 0
      real(c_double)    :: decrease = 0
      real(c_double)    :: curvature = 0
      integer(c_int)    :: search = 0
   end type

   type, bind(C), public :: fsdp_lbfgs_result
      real(c_double)    :: loss = 0
      real(c_double)    :: gradient_norm = 0
      integer(c_size_t) :: iterations = 0
      integer(c_size_t) :: evaluations = 0
      integer(c_int)    :: end = 0
   end type

   type, bind(C), public :: fsdp_loss_scaler_options
      integer(c_size_t) :: size = 0
      real(c_double)    :: initial_scale = 0
      real(c_double)    :: growth_factor = 0
      real(c_double)    :: backoff_factor = 0
      integer(c_size_t) :: growth_interval = 0
      real(c_double)    :: min_scale = 0
      real(c_double)    :: max_scale = 0
      integer(c_int)    :: allow_any_dtype = 0
   end type

   type, bind(C), public :: fsdp_loss_scaler_state
      real(c_double)    :: scale = 0
      integer(c_size_t) :: clean_steps = 0
      integer(c_size_t) :: skipped_steps = 0
   end type

   type, bind(C), public :: fsdp_lr_schedule
      integer(c_int)    :: kind = 0
      real(c_double)    :: peak = 0
      real(c_double)    :: final = 0
      integer(c_size_t) :: warmup = 0
      integer(c_size_t) :: total = 0
      integer(c_size_t) :: decay = 0
      integer(c_size_t) :: every = 0
      real(c_double)    :: gamma = 0
   end type

   ! fsdp/tensor_parallel.h

   type, bind(C), public :: fsdp_tp_activations
      integer(c_size_t) :: rows = 0
      integer(c_size_t) :: width = 0
      integer(c_int)    :: dtype = 0
      integer(c_int)    :: outside = 0
   end type

   ! fsdp/gradients.h, fsdp/hook.h

   type, bind(C), public :: fsdp_tensor_norm
      type(c_ptr)    :: name = c_null_ptr
      real(c_double) :: norm = 0
   end type

   type, bind(C), public :: fsdp_gradient_tensor
      type(c_ptr)       :: name = c_null_ptr
      integer(c_size_t) :: offset = 0
      integer(c_size_t) :: n_dims = 0
      integer(c_size_t) :: shape(FSDP_MAX_DIMS) = 0
   end type

   type, bind(C), public :: fsdp_gradient
      type(c_ptr)       :: unit = c_null_ptr
      type(c_ptr)       :: values = c_null_ptr
      integer(c_size_t) :: count = 0
      integer(c_size_t) :: n_tensors = 0
      type(c_ptr)       :: tensors = c_null_ptr
      integer(c_int)    :: ranks = 0
   end type

   type, bind(C), public :: fsdp_hook_callbacks
      integer(c_size_t) :: size = 0
      type(c_funptr)    :: before = c_null_funptr
      type(c_funptr)    :: after = c_null_funptr
      type(c_ptr)       :: state = c_null_ptr
   end type

   type, bind(C), public :: fsdp_pipeline_options
      integer(c_size_t) :: size = 0
      type(c_ptr)       :: schedule = c_null_ptr ! a text; fsdp_pipeline_create() sets these three
      type(c_ptr)       :: file = c_null_ptr
      type(c_ptr)       :: text = c_null_ptr
      integer(c_int)    :: stages_per_rank = 0
      integer(c_int)    :: micros = 0
      integer(c_int)    :: buffers = 0
      integer(c_int)    :: most_held = 0
      integer(c_size_t) :: bytes = 0
      type(c_ptr)       :: bytes_of = c_null_ptr
      integer(c_size_t) :: output_bytes = 0
      integer(c_size_t) :: batch = 0
      integer(c_size_t) :: memory_limit = 0
      integer(c_int)    :: placement = 0
   end type

   type, bind(C), public :: fsdp_pipeline_callbacks
      integer(c_size_t) :: size = 0
      type(c_funptr)    :: forward = c_null_funptr
      type(c_funptr)    :: loss = c_null_funptr
      type(c_funptr)    :: backward_input = c_null_funptr
      type(c_funptr)    :: backward_weight = c_null_funptr
      type(c_ptr)       :: user = c_null_ptr
   end type

   type, bind(C), public :: fsdp_pipeline_info
      integer(c_int)    :: ranks = 0
      integer(c_int)    :: stages = 0
      integer(c_int)    :: micros = 0
      integer(c_int)    :: stages_here = 0
      integer(c_int)    :: most_held = 0
      integer(c_int)    :: most_owed = 0
      integer(c_size_t) :: messages = 0
      integer(c_size_t) :: bytes = 0
      integer(c_size_t) :: steps = 0
      real(c_double)    :: step_seconds = 0
      real(c_double)    :: wait_seconds = 0
      integer(c_size_t) :: device_bytes = 0
      integer(c_size_t) :: pinned_bytes = 0
   end type

   type, bind(C), public :: fsdp_int8_options
      integer(c_size_t) :: size = 0
      integer(c_size_t) :: block = 0
   end type

   type, bind(C), public :: fsdp_power_sgd_options
      integer(c_size_t)  :: size = 0
      integer(c_size_t)  :: rank = 0
      real(c_double)     :: min_ratio = 0
      integer(c_int64_t) :: seed = 0
   end type

   ! fsdp/batch_norm.h

   type, bind(C), public :: fsdp_batch_norm_shape
      integer(c_size_t) :: samples = 0
      integer(c_size_t) :: channels = 0
      integer(c_size_t) :: pixels = 0
   end type

   type, bind(C), public :: fsdp_batch_norm_options
      integer(c_size_t) :: size = 0
      real(c_double)    :: eps = 0
      real(c_double)    :: momentum = 0
   end type

   type, bind(C), public :: fsdp_batch_norm_running
      type(c_ptr) :: mean = c_null_ptr
      type(c_ptr) :: variance = c_null_ptr
   end type

   type, bind(C), public :: fsdp_batch_norm_saved
      type(c_ptr)    :: mean = c_null_ptr
      type(c_ptr)    :: scale = c_null_ptr
      real(c_double) :: count = 0
   end type

   ! fsdp/checkpoint.h

   type, bind(C), public :: fsdp_checkpoint_state
      integer(c_int64_t)     :: step = 0
      integer(c_int64_t)     :: epoch = 0
      integer(c_int64_t)     :: sample = 0
      integer(c_int64_t)     :: seed = 0
      character(kind=c_char) :: text(FSDP_CHECKPOINT_TEXT_BYTES) = c_null_char
      integer(c_int64_t)     :: ranks = 0
   end type

   type, bind(C), public :: fsdp_checkpoint_options
      integer(c_size_t) :: size = 0
      integer(c_int)    :: dtype = 0
      integer(c_size_t) :: file_bytes = 0
      integer(c_size_t) :: keep_last = 0
      integer(c_size_t) :: keep_every = 0
      integer(c_int)    :: asynchronous = 0
      integer(c_int)    :: cached = 0
   end type

   type, bind(C), public :: fsdp_checkpoint_rename
      type(c_ptr) :: from = c_null_ptr
      type(c_ptr) :: to = c_null_ptr
   end type

   type, bind(C), public :: fsdp_checkpoint_load_options
      integer(c_size_t) :: size = 0
      integer(c_int)    :: allow_missing = 0
      integer(c_int)    :: allow_extra = 0
      integer(c_int)    :: allow_mis_shaped = 0
      type(c_ptr)       :: renames = c_null_ptr
      integer(c_size_t) :: n_renames = 0
      type(c_ptr)       :: model = c_null_ptr
   end type

   type, bind(C), public :: fsdp_box
      integer(c_size_t) :: offset(FSDP_MAX_DIMS) = 0
      integer(c_size_t) :: extent(FSDP_MAX_DIMS) = 0
      integer(c_size_t) :: stride(FSDP_MAX_DIMS) = 0
   end type

   type, bind(C), public :: fsdp_column
      type(c_ptr)       :: name = c_null_ptr
      integer(c_int)    :: dtype = 0
      integer(c_size_t) :: width = 0
   end type

   ! fsdp/sampler.h

   type, bind(C), public :: fsdp_sampler
      integer(c_size_t)  :: dataset = 0
      integer(c_int)     :: rank = 0
      integer(c_int)     :: size = 0
      integer(c_int64_t) :: seed = 0
      integer(c_int)     :: shuffle = 0
      integer(c_int)     :: drop_last = 0
   end type

   abstract interface
      ! Of fsdp_config%log.
      subroutine fsdp_log_function(state, level, rank, text) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value    :: state
         integer(c_int), value :: level, rank
         type(c_ptr), value    :: text ! fsdp_string(text)
      end subroutine

      ! Initial values of a tensor with FSDP_FILL_CALLBACK.
      integer(c_int) function fsdp_fill_function(state, tensor, first, count, values, dtype) bind(C)
         import :: c_int, c_ptr, c_size_t
         type(c_ptr), value       :: state
         type(c_ptr), value       :: tensor ! fsdp_string(tensor)
         integer(c_size_t), value :: first  ! from 0, in the order of the elements in memory
         integer(c_size_t), value :: count
         type(c_ptr), value       :: values ! c_f_pointer(values, array, [count])
         integer(c_int), value    :: dtype
      end function

      ! An optimizer of the program's own.
      integer(c_int) function fsdp_update_function(state, update) bind(C)
         import :: c_int, c_ptr, fsdp_update
         type(c_ptr), value            :: state
         type(fsdp_update), intent(in) :: update
      end function

      ! Of fsdp_hook_callbacks: before and after the reduction of a gradient.
      integer(c_int) function fsdp_hook_function(state, gradient) bind(C)
         import :: c_int, c_ptr, fsdp_gradient
         type(c_ptr), value              :: state
         type(fsdp_gradient), intent(in) :: gradient
      end function

      ! The passes, and the loss, of L-BFGS.
      integer(c_int) function fsdp_lbfgs_closure(state, loss) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value          :: state
         real(c_double), intent(out) :: loss
      end function

      ! Of fsdp_pipeline_callbacks. `in` is null in stage 0, as `grad_in` is.
      integer(c_int) function fsdp_pipeline_forward(user, stage, micro, in, out) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value    :: user
         integer(c_int), value :: stage, micro
         type(c_ptr), value    :: in, out
      end function

      integer(c_int) function fsdp_pipeline_loss(user, micro, out, grad_out, value) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value          :: user
         integer(c_int), value       :: micro
         type(c_ptr), value          :: out, grad_out
         real(c_double), intent(out) :: value
      end function

      integer(c_int) function fsdp_pipeline_backward_input(user, stage, micro, in, grad_out, grad_in) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value    :: user
         integer(c_int), value :: stage, micro
         type(c_ptr), value    :: in, grad_out, grad_in
      end function

      integer(c_int) function fsdp_pipeline_backward_weight(user, stage, micro, in, grad_out) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value    :: user
         integer(c_int), value :: stage, micro
         type(c_ptr), value    :: in, grad_out
      end function
   end interface

   public :: fsdp_fill_function, fsdp_hook_function, fsdp_lbfgs_closure, fsdp_log_function, fsdp_update_function
   public :: fsdp_pipeline_backward_input, fsdp_pipeline_backward_weight, fsdp_pipeline_forward, fsdp_pipeline_loss
end module
