! The constants of the headers in include/fsdp, which say what each of them means.
module fsdp_constants
   use, intrinsic :: iso_c_binding, only: c_double, c_int, c_size_t
   implicit none
   public
   private :: c_double, c_int, c_size_t

   ! fsdp/algorithms.h
   integer(c_int), parameter :: FSDP_ALGO_AUTO = 0
   integer(c_int), parameter :: FSDP_ALGO_INLINE = 1
   integer(c_int), parameter :: FSDP_ALGO_STAGED = 2
   integer(c_int), parameter :: FSDP_ALGO_DIRECT = 3
   integer(c_int), parameter :: FSDP_ALGO_CMA = 4
   integer(c_int), parameter :: FSDP_ALGO_RAILS = 5
   integer(c_int), parameter :: FSDP_ALGO_RING = 6
   integer(c_int), parameter :: FSDP_ALGO_HALVES = 7
   integer(c_int), parameter :: FSDP_N_ALGORITHMS = 8

   ! fsdp/buffer.h
   integer(c_int), parameter :: FSDP_BUFFER_PER_RANK = 0
   integer(c_int), parameter :: FSDP_BUFFER_PER_NODE = 1
   integer(c_int), parameter :: FSDP_BUFFER_DEVICE = 2

   ! fsdp/checkpoint.h
   integer(c_int), parameter :: FSDP_CHECKPOINT_PATH_BYTES = 1024
   integer(c_int), parameter :: FSDP_CHECKPOINT_TEXT_BYTES = 1024
   integer(c_int), parameter :: FSDP_CHECKPOINT_NAME_BYTES = 64
   integer(c_int), parameter :: FSDP_CHECKPOINT_SCRATCH_BYTES = 4460544

   ! fsdp/config.h
   integer(c_int), parameter :: FSDP_UNSET = -1
   integer(c_int), parameter :: FSDP_LOG_OFF = 0
   integer(c_int), parameter :: FSDP_LOG_ERROR = 1
   integer(c_int), parameter :: FSDP_LOG_WARN = 2
   integer(c_int), parameter :: FSDP_LOG_INFO = 3
   integer(c_int), parameter :: FSDP_LOG_DEBUG = 4
   integer(c_int), parameter :: FSDP_VERIFY_OFF = 0
   integer(c_int), parameter :: FSDP_VERIFY_ARGS = 1
   integer(c_int), parameter :: FSDP_VERIFY_FULL = 2
   integer(c_int), parameter :: FSDP_ISA_AUTO = 0
   integer(c_int), parameter :: FSDP_ISA_SCALAR = 1
   integer(c_int), parameter :: FSDP_ISA_AVX2 = 2
   integer(c_int), parameter :: FSDP_ISA_AVX512 = 3
   integer(c_int), parameter :: FSDP_ISA_NEON = 4
   integer(c_int), parameter :: FSDP_PROGRESS_AUTO = 0
   integer(c_int), parameter :: FSDP_PROGRESS_INLINE = 1
   integer(c_int), parameter :: FSDP_PROGRESS_THREAD = 2
   integer(c_int), parameter :: FSDP_CPU_AUTO = -2
   integer(c_int), parameter :: FSDP_CPU_NONE = -3
   integer(c_int), parameter :: FSDP_CMA_AUTO = 0
   integer(c_int), parameter :: FSDP_CMA_OFF = 1
   integer(c_int), parameter :: FSDP_BIND_AUTO = 0
   integer(c_int), parameter :: FSDP_BIND_NONE = 1
   integer(c_int), parameter :: FSDP_BIND_STRICT = 2
   integer(c_int), parameter :: FSDP_BIND_DRY = 3
   integer(c_int), parameter :: FSDP_BIND_GIVE_BACK = 0
   integer(c_int), parameter :: FSDP_BIND_KEEP = 1
   integer(c_int), parameter :: FSDP_DEVICE_AUTO = 0
   integer(c_int), parameter :: FSDP_DEVICE_HOST = 1
   integer(c_int), parameter :: FSDP_DEVICE_GPU = 2
   integer(c_int), parameter :: FSDP_GPU_AWARE_AUTO = 0
   integer(c_int), parameter :: FSDP_GPU_AWARE_OFF = 1
   integer(c_int), parameter :: FSDP_GPU_AWARE_ON = 2
   integer(c_int), parameter :: FSDP_CHECKPOINT_LOCK_AUTO = 0
   integer(c_int), parameter :: FSDP_CHECKPOINT_LOCK_FLOCK = 1
   integer(c_int), parameter :: FSDP_CHECKPOINT_LOCK_OWNER = 2
   integer(c_int), parameter :: FSDP_CHECKPOINT_LOCK_NONE = 3
   character(*), parameter :: FSDP_ALGORITHM_NAMES = "auto|inline|staged|direct|cma|rails|ring|halves"

   ! fsdp/context.h
   integer(c_int), parameter :: FSDP_MEMORY_PARAMETERS = 0
   integer(c_int), parameter :: FSDP_MEMORY_GRADIENTS = 1
   integer(c_int), parameter :: FSDP_MEMORY_OPTIMIZER = 2
   integer(c_int), parameter :: FSDP_MEMORY_GATHERED = 3
   integer(c_int), parameter :: FSDP_MEMORY_GRADIENT_VIEWS = 4
   integer(c_int), parameter :: FSDP_MEMORY_STAGING = 5
   integer(c_int), parameter :: FSDP_MEMORY_BOOKKEEPING = 6
   integer(c_int), parameter :: FSDP_MEMORY_BUFFERS = 7
   integer(c_int), parameter :: FSDP_N_MEMORY_KINDS = 8

   ! fsdp/dtype.h
   integer(c_int), parameter :: FSDP_F64 = 0
   integer(c_int), parameter :: FSDP_F32 = 1
   integer(c_int), parameter :: FSDP_BF16 = 2
   integer(c_int), parameter :: FSDP_F16 = 3
   integer(c_int), parameter :: FSDP_I64 = 4
   integer(c_int), parameter :: FSDP_I32 = 5
   integer(c_int), parameter :: FSDP_U8 = 6
   integer(c_int), parameter :: FSDP_N_DTYPES = 7
   integer(c_int), parameter :: FSDP_SUM = 0
   integer(c_int), parameter :: FSDP_AVG = 1
   integer(c_int), parameter :: FSDP_MIN = 2
   integer(c_int), parameter :: FSDP_MAX = 3
   integer(c_int), parameter :: FSDP_PROD = 4
   integer(c_int), parameter :: FSDP_N_REDOPS = 5

   ! fsdp/gradients.h
   integer(c_int), parameter :: FSDP_TENSORS_PER_REDUCTION = 32

   ! fsdp/layout.h
   integer(c_int), parameter :: FSDP_SHARD_MULTIPLE = 256
   integer(c_int), parameter :: FSDP_TENSOR_ALIGNMENT = 64
   integer(c_size_t), parameter :: FSDP_GRANULARITY_FLAT = 0_c_size_t
   integer(c_size_t), parameter :: FSDP_GRANULARITY_TENSOR = -1_c_size_t

   ! fsdp/lbfgs.h
   integer(c_int), parameter :: FSDP_STRONG_WOLFE = 0
   integer(c_int), parameter :: FSDP_ARMIJO = 1
   integer(c_int), parameter :: FSDP_LBFGS_MORE = 0
   integer(c_int), parameter :: FSDP_LBFGS_GRADIENT = 1
   integer(c_int), parameter :: FSDP_LBFGS_CHANGE = 2
   integer(c_int), parameter :: FSDP_LBFGS_NO_PROGRESS = 3
   integer(c_int), parameter :: FSDP_LBFGS_NOT_FINITE = 4

   ! fsdp/lr_schedule.h
   integer(c_int), parameter :: FSDP_LR_CONSTANT = 0
   integer(c_int), parameter :: FSDP_LR_LINEAR = 1
   integer(c_int), parameter :: FSDP_LR_COSINE = 2
   integer(c_int), parameter :: FSDP_LR_WSD = 3
   integer(c_int), parameter :: FSDP_LR_STEP = 4

   ! fsdp/mesh.h
   integer(c_int), parameter :: FSDP_MAX_AXES = 6
   integer(c_int), parameter :: FSDP_AXIS_NAME_BYTES = 32

   ! fsdp/model.h
   integer(c_int), parameter :: FSDP_MAX_DIMS = 8
   integer(c_int), parameter :: FSDP_FULL_SHARD = 0
   integer(c_int), parameter :: FSDP_NO_SHARD = 1
   integer(c_int), parameter :: FSDP_SHARD_GRAD_OP = 2
   integer(c_int), parameter :: FSDP_SHARD_OPTIM = 3
   integer(c_int), parameter :: FSDP_HYBRID_SHARD = 4
   integer(c_int), parameter :: FSDP_HYBRID_SHARD_ZERO2 = 5
   integer(c_int), parameter :: FSDP_N_STRATEGIES = 6
   integer(c_int), parameter :: FSDP_SGD = 0
   integer(c_int), parameter :: FSDP_SGD_MOMENTUM = 1
   integer(c_int), parameter :: FSDP_ADAMW = 2
   integer(c_int), parameter :: FSDP_ADAM = 3
   integer(c_int), parameter :: FSDP_LION = 4
   integer(c_int), parameter :: FSDP_CUSTOM = 5
   integer(c_int), parameter :: FSDP_MUON = 6
   integer(c_int), parameter :: FSDP_N_OPTIMIZER_KINDS = 7
   integer(c_int), parameter :: FSDP_MAX_STATES = 8
   integer(c_int), parameter :: FSDP_FILL_CONSTANT = 0
   integer(c_int), parameter :: FSDP_FILL_NORMAL = 1
   integer(c_int), parameter :: FSDP_FILL_UNIFORM = 2
   integer(c_int), parameter :: FSDP_FILL_CALLBACK = 3
   integer(c_int), parameter :: FSDP_UNUSED_ERROR = 0
   integer(c_int), parameter :: FSDP_UNUSED_KEEP = 1
   integer(c_int), parameter :: FSDP_UNUSED_ZERO = 2
   integer(c_int), parameter :: FSDP_N_UNUSED = 3
   integer(c_int), parameter :: FSDP_SYNC_NONE = 0
   integer(c_int), parameter :: FSDP_SYNC_ALL = 1
   integer(c_int), parameter :: FSDP_SYNC_GROUP = 2
   integer(c_int), parameter :: FSDP_ON_HOST = 0
   integer(c_int), parameter :: FSDP_ON_DEVICE = 1
   integer(c_int), parameter :: FSDP_ON_DEVICE_OFFLOADED = 2
   integer(c_int), parameter :: FSDP_N_PLACEMENTS = 3
   integer(c_int), parameter :: FSDP_TENSOR_NO_WEIGHT_DECAY = 1
   integer(c_int), parameter :: FSDP_TENSOR_FROZEN = 2
   integer(c_int), parameter :: FSDP_TENSOR_IGNORED = 4
   integer(c_int), parameter :: FSDP_TENSOR_KEEP_DTYPE = 8
   integer(c_int), parameter :: FSDP_TENSOR_TP = 16
   integer(c_size_t), parameter :: FSDP_NO_TENSOR = -1_c_size_t

   ! fsdp/optimizer.h
   real(c_double), parameter :: FSDP_INHERIT = -1.0_c_double

   ! fsdp/status.h
   integer(c_int), parameter :: FSDP_OK = 0
   integer(c_int), parameter :: FSDP_ERR_ARG = 1
   integer(c_int), parameter :: FSDP_ERR_STATE = 2
   integer(c_int), parameter :: FSDP_ERR_MISMATCH = 3
   integer(c_int), parameter :: FSDP_ERR_MEMORY = 4
   integer(c_int), parameter :: FSDP_ERR_MPI = 5
   integer(c_int), parameter :: FSDP_ERR_TIMEOUT = 6
   integer(c_int), parameter :: FSDP_ERR_UNSUPPORTED = 7
   integer(c_int), parameter :: FSDP_ERR_LEAK = 8
   integer(c_int), parameter :: FSDP_ERR_IO = 9
   integer(c_int), parameter :: FSDP_ERR_FORMAT = 10
   integer(c_int), parameter :: FSDP_ERR_DEVICE = 11

   ! fsdp/stop.h
   integer(c_int), parameter :: FSDP_STOP_EXIT_STATUS = 75

   ! fsdp/tensor_parallel.h
   integer(c_int), parameter :: FSDP_TP_ALL_ROWS = 0
   integer(c_int), parameter :: FSDP_TP_OWN_ROWS = 1
   integer(c_int), parameter :: FSDP_TP_NO_TARGET = -1

   ! fsdp/topology.h
   integer(c_int), parameter :: FSDP_MASK_WORDS = 64
   integer(c_int), parameter :: FSDP_MOST_GPUS = 64
   integer(c_int), parameter :: FSDP_ADDRESS_BYTES = 16
   integer(c_int), parameter :: FSDP_REASON_BYTES = 128
   integer(c_int), parameter :: FSDP_MASK_TEXT_BYTES = 256
   integer(c_int), parameter :: FSDP_LINK_UNKNOWN = 0
   integer(c_int), parameter :: FSDP_LINK_PCIE = 1
   integer(c_int), parameter :: FSDP_LINK_XGMI = 2
   integer(c_int), parameter :: FSDP_LINK_NVLINK = 3
   integer(c_int), parameter :: FSDP_SOURCE_HWLOC = 0
   integer(c_int), parameter :: FSDP_SOURCE_SMI = 1
   integer(c_int), parameter :: FSDP_SOURCE_HIP = 2
   integer(c_int), parameter :: FSDP_SOURCE_CGROUP = 3
   integer(c_int), parameter :: FSDP_SOURCE_GPUS = 4
   integer(c_int), parameter :: FSDP_SOURCE_NETWORK = 5
   integer(c_int), parameter :: FSDP_SOURCE_MEMORY = 6
   integer(c_int), parameter :: FSDP_N_SOURCES = 7
   integer(c_int), parameter :: FSDP_SHARED_GPU = 1
   integer(c_int), parameter :: FSDP_REMOTE_GPU = 2
   integer(c_int), parameter :: FSDP_NO_GPU = 4
   integer(c_int), parameter :: FSDP_UNKNOWN_LOCALITY = 8
   integer(c_int), parameter :: FSDP_OVERLAPPING_CORES = 16
   integer(c_int), parameter :: FSDP_CROSSES_CACHE = 32
   integer(c_int), parameter :: FSDP_CROSSES_NUMA = 64
   integer(c_int), parameter :: FSDP_FEW_CORES = 128
   integer(c_int), parameter :: FSDP_OUTSIDE_MACHINE = 256
   integer(c_int), parameter :: FSDP_VISIBLE_AT_ODDS = 512
   integer(c_int), parameter :: FSDP_MASKED_GPU = 1024
   integer(c_int), parameter :: FSDP_SLOWER_CORES = 2048

   ! fsdp/version.h
   integer(c_int), parameter :: FSDP_VERSION_MAJOR = 0
   integer(c_int), parameter :: FSDP_VERSION_MINOR = 1
   integer(c_int), parameter :: FSDP_VERSION_PATCH = 0

end module
