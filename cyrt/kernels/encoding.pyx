"""``CommandEncoder.add_kernel``: a kernel with its arguments, geometry and launch attributes."""

from cpython.mem cimport PyMem_Free

from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport record_kernel
from cyrt.graph.recording cimport CLUSTER, COOPERATIVE, Geometry
from cyrt.kernels.arguments cimport declared_memory, use_declared
from cyrt.kernels.geometry cimport check_cluster, check_cooperative, dimension, dynamic_smem
from cyrt.kernels.kernel cimport (
    Arguments, Kernel, allocate_arguments, allow_declared, argument_tuple, check_launch, pack,
    replay_launch,
)
from cyrt.kernels.vectorcall cimport PySequence_Fast_ITEMS
from cyrt.runtime.module cimport LoadedFunction


cdef list replace_uses(Kernel kernel, LoadedFunction function, list declared, reads, writes,
                       list foreign, Arguments* packed):
    """`reads` and `writes` replace the signature's accesses; a module's variables are kept."""
    cdef int i, count = 0
    for i in range(packed.num_uses):
        if (writes if packed.uses[i].access else reads) is None \
                or packed.uses[i].block == function.module.globals:
            packed.uses[count] = packed.uses[i]
            count += 1
    foreign, packed.num_uses = use_declared(kernel.name, declared, function.module.ordinal,
                                            foreign, packed.uses, count)
    return foreign


cdef int record_launch(Recorder recorder, kernel, grid, block, args, smem, cluster,
                       bint cooperative, reads, writes) except -1:
    cdef int ordinal = recorder.state.ordinal
    cdef unsigned int flags = 0
    cdef unsigned int[3] sizes
    cdef Geometry geometry
    cdef Arguments packed
    cdef LoadedFunction function
    cdef Kernel self
    cdef tuple values
    cdef list declared, foreign
    if not isinstance(kernel, Kernel):
        if not hasattr(kernel, "_choose"):      # a TritonKernel has it
            raise TypeError(f"add_kernel: expected a Kernel, got {type(kernel).__name__}")
        kernel, grid, block, smem, args = kernel._choose(ordinal, grid, block, smem, args)
        cooperative = cooperative or (<Kernel>kernel).cooperative
    self = <Kernel>kernel
    dimension(grid, "grid", geometry.grid)
    dimension(block, "block", geometry.block)
    geometry.smem = dynamic_smem(smem)
    values = argument_tuple(self.name, args)
    declared = declared_memory(self.name, reads, writes)
    if declared is None and cluster is None and not cooperative and replay_launch(
            self, recorder, &geometry, PySequence_Fast_ITEMS(values), len(values)):
        return 0
    function = self.load(ordinal)
    if cluster is not None:
        dimension(cluster, "cluster", sizes)
    allocate_arguments(self, len(values), len(declared or ()), &packed)
    try:
        check_launch(self, function, &geometry)
        if cluster is not None:
            check_cluster(self.name, function, &geometry, sizes)
            flags |= CLUSTER
        if cooperative:
            check_cooperative(self.name, function, &geometry, self.resident)
            flags |= COOPERATIVE
        foreign = pack(self, function, ordinal, PySequence_Fast_ITEMS(values),
                       &packed)
        if declared is not None:
            foreign = replace_uses(self, function, declared, reads, writes, foreign, &packed)
        if self.num_ranges:
            allow_declared(self, &packed, declared)
        record_kernel(recorder, function, &geometry, packed.blob, packed.uses,
                      packed.num_uses, foreign, self.opaque and declared is None, flags, sizes,
                      NULL)
    finally:
        PyMem_Free(packed.heap)
    return 0
