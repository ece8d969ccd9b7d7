! What a program uses: use fsdp. Built with FSDP_FORTRAN_MPI_F08 where the MPI has the module mpi_f08.
module fsdp
   use fsdp_constants
   use fsdp_structs
   use fsdp_base, only: fsdp_context, fsdp_is_null, fsdp_last_error, fsdp_status_name, fsdp_status_text, fsdp_string
   use fsdp_contexts
   use fsdp_collectives
   use fsdp_collectives_of_f64
   use fsdp_collectives_of_f32
   use fsdp_collectives_of_i64
   use fsdp_collectives_of_i32
   use fsdp_collectives_of_u8
   use fsdp_collectives_of_16_bits
   use fsdp_buffers
   use fsdp_buffers_of_f64
   use fsdp_buffers_of_f32
   use fsdp_buffers_of_i64
   use fsdp_buffers_of_i32
   use fsdp_buffers_of_u8
   use fsdp_buffers_of_16_bits
   use fsdp_meshes
   use fsdp_models
   use fsdp_passes
   use fsdp_optimizers
   use fsdp_views
   use fsdp_views_of_f64
   use fsdp_views_of_f32
   use fsdp_views_of_16_bits
   use fsdp_hooks
   use fsdp_pipelines
   use fsdp_checkpoints
   use fsdp_tensor_parallel
   use fsdp_topologies
   use fsdp_tools
#ifdef FSDP_FORTRAN_MPI_F08
   use fsdp_mpi_f08
#endif
   implicit none
   public

   ! of the modules among themselves
   private :: buffer_view, described_tensor, find_tensor, finish_view, grad_view, masters_dtype, moment_dtype_of
   private :: param_view, shard_view, state_view, view
end module
