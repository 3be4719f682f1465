"""Attention of many rows of queries by cuDNN."""

from libc.string cimport memcpy

from cyrt.builtin cimport library
from cyrt.builtin.attention cimport Steps
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.flash_attention cimport MASK, OUT, SINKS, VALUES
from cyrt.builtin.library cimport CUDNN, bindings_of, is_served, learn_call, record_learned
from cyrt.dtypes import DTYPES
from cyrt.graph.exact_key cimport Key, add_word
from cyrt.graph.template cimport ALIGNMENT, Template, begin_call_key, find_template, refuse
from cyrt.runtime.device cimport context_of

# The maximum size of the workspace in bytes.
MOST_WORKSPACE = 1 << 28
# The maximum distance of a tensor's first and last elements: the library counts in 32 bits.
MOST_SPAN = 1 << 31

cdef enum:
    VECTOR = 8                  # features are a multiple of it, and so are the library's strides
    OPERANDS = VALUES + 1       # a call's operands, without a mask
    MASKED = 4                  # cyrt's kernels lose this many times as much with a mask

cdef int FLASH_ATTENTION = op_code("flash_attention")

# The number of multiplications of queries and keys from which on the library is used. It saves less
# than 4 us in smaller calls.
LEAST = 1 << 27
# The number of multiplications, in all calls with one key, after which the library is asked. Making
# its plan takes 40 to 60 ms; cyrt's own kernels lose as much time in that many multiplications. So
# a shape that is not used again, such as a prompt's, needs no plan, and the calls of every other
# shape take at most twice the time of the better choice.
PATIENCE = 1 << 43
# The maximum number of keys whose multiplications are counted.
COUNTED = 256

cdef double least = LEAST, patience = PATIENCE
# The number of multiplications of each key; the key that was used last is the last. The plans of
# graph/exact_key do not serve here: which of them are dropped depends on addresses, and the moment
# at which the library is asked must not depend on these.
cdef dict multiplied = {}


def decide(int ordinal, served=None, double from_=LEAST, double behind=PATIENCE):
    """Use the library on a device, or do not; None decides at the next attention. `from_` replaces
    LEAST, and `behind` PATIENCE. Tests call this: they have a library for the emulated device, and
    small sizes."""
    global least, patience
    least, patience = from_, behind
    multiplied.clear()
    library.decide(CUDNN, ordinal, served)


cdef inline void add_steps(Key* key, const Steps* steps) noexcept:
    add_word(key, <unsigned long long>steps.batch)
    add_word(key, <unsigned long long>steps.head)
    add_word(key, <unsigned long long>steps.row)


cdef inline double multiplications(const FlashSpace* space) noexcept:
    return <double>space.batches * space.heads * space.rows * space.keys * space.features


cdef bint is_worth_a_plan(const Key* key, double work) except -1:
    """Count the multiplications of a call, and return whether those of its key are enough."""
    cdef bytes words = (<const char*>key.words)[:key.count * sizeof(key.words[0])]
    work += <double>multiplied.pop(words, 0.0)
    if work > patience:
        return True
    if len(multiplied) >= COUNTED:
        del multiplied[next(iter(multiplied))]
    multiplied[words] = work
    return False


cdef bint is_for_library(int ordinal, const FlashSpace* space) except -1:
    return (multiplications(space) >= least
            and space.keys > 0 and not (space.causal and space.rows > space.keys)
            and space.features % VECTOR == 0 and space.scale > 0 and is_served(CUDNN, ordinal))


cdef inline bint reads_mask(const FlashSpace* space) noexcept:
    """Return whether the library reads the mask: of rows that begin at vectors, if it hides."""
    return space.hides and space.mask_key_step == 1 and space.mask.row > 0 \
        and (space.mask.row | space.mask.head | space.mask.batch) % VECTOR == 0


cdef bint record_library_attention(Recorder encoder, int dtype, const Operand* operands,
                                   const FlashSpace* space) except -1:
    cdef Key key
    cdef Template template
    cdef unsigned long long scale
    cdef int i, ordinal = encoder.state.ordinal
    cdef bint masked = operands[MASK].buffer != NULL
    cdef int count = OPERANDS + masked
    if operands[SINKS].buffer != NULL or (masked and not reads_mask(space)) \
            or not is_for_library(ordinal, space):
        return False
    for i in range(count):
        if operands[i].address % ALIGNMENT:
            return False
    memcpy(&scale, &space.scale, sizeof(scale))
    begin_call_key(&key, CUDNN, ordinal)
    add_word(&key, FLASH_ATTENTION << 16 | dtype << 8 | masked << 1 | space.causal)
    add_word(&key, <unsigned long long>space.rows << 32 | <unsigned long long>space.keys)
    add_word(&key, space.batches)
    add_word(&key, space.heads)
    add_word(&key, space.key_heads)
    add_word(&key, space.features)
    add_word(&key, scale)
    add_steps(&key, &space.queries)
    add_steps(&key, &space.key_steps)
    add_steps(&key, &space.values)
    if masked:
        add_steps(&key, &space.mask)
    template = find_template(&key)
    if template is None:
        # An explanation depends only on the arguments, so the library is asked at the first call.
        if encoder.listed is None \
                and not is_worth_a_plan(&key, multiplications(space) * (MASKED if masked else 1)):
            return False
        template = prepare(ordinal, dtype, operands, count, space, &key)
    return record_learned(encoder, template, operands, count, 1 << OUT)


# -- in the library's terms ------------------------------------------------------------------------


cdef object tensor(long long batches, long long heads, long long rows, long long features,
                   const Steps* steps):
    """Return a tensor of rows of adjacent elements, or None if the library does not read it.
    Dimensions of one element have any step here."""
    cdef long long extent = features
    cdef list strides = []
    for size, step in ((rows, steps.row), (heads, steps.head), (batches, steps.batch)):
        if size == 1:
            step = extent
        if step <= 0:
            return None
        strides.insert(0, step)
        extent += step * (size - 1)
    if extent >= MOST_SPAN:
        return None
    return bindings_of(CUDNN).Tensor((batches, heads, rows, features), (*strides, 1))


cdef Template prepare(int ordinal, int dtype, const Operand* operands, int count,
                      const FlashSpace* space, Key* key):
    """Learn the attention, or learn that the library does not provide it."""
    cdef Steps dense
    cdef long long batches = space.batches, heads = space.heads, shared = space.key_heads
    cdef long long rows = space.rows, keys = space.keys, features = space.features
    cudnn = bindings_of(CUDNN)
    dense.row, dense.head, dense.batch = features, rows * features, heads * rows * features
    tensors = (tensor(batches, heads, rows, features, &dense),
               tensor(batches, heads, rows, features, &space.queries),
               tensor(batches, shared, keys, features, &space.key_steps),
               tensor(batches, shared, keys, features, &space.values))
    if None in tensors:
        return refuse(key, ordinal, "the library reads no such strides")
    mask = None
    if count > OPERANDS:
        # Broadcast batches and heads are one.
        mask = tensor(batches if space.mask.batch else 1, heads if space.mask.head else 1, rows,
                      keys, &space.mask)
        if mask is None:
            return refuse(key, ordinal, "the library reads no such mask")
    problem = cudnn.AttentionProblem(DTYPES[dtype].name, *tensors, space.scale, bool(space.causal),
                                     mask)
    opened, epoch = cudnn.find()[0], context_of(ordinal).epoch

    def build():
        attention = cudnn.Attention(opened, ordinal, epoch, problem, most_workspace=MOST_WORKSPACE)
        attention.build_first()
        return attention

    return learn_call(CUDNN, key, ordinal, build, operands, count,
                      DTYPES[dtype].itemsize * batches * heads * rows * features)
