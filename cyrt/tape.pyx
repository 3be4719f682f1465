"""The tape: calls of functions that have rules, and the gradients that follow from them."""

cimport cython
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free
from libc.string cimport memset

import inspect
import os
from dataclasses import fields, is_dataclass

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport MAX_OPS, op_code
from cyrt.builtin.space cimport tuple_of_sizes
from cyrt.driver.calling_code cimport cyrt_calling_code
from cyrt.dtypes import DTYPES
from cyrt.ndarray cimport Array, device_of, has_shape, overlaps, shape_of, view_of
from cyrt.kernels.vectorcall cimport PyVectorcall_NARGS, Vectorcall, offer_vectorcall
from cyrt.operators cimport ops
from cyrt.operators import functions
from cyrt.runtime cimport taping
from cyrt.runtime.allocation cimport allocate_zeroed, reallocate
from cyrt.runtime.memory cimport Memory, array_type, block_of
from cyrt.runtime.state cimport Block
from cyrt.runtime.taping cimport (
    Thread, close_tape, is_followed, is_followed_by, open_tape, this_thread,
)

cdef extern from *:
    """
    #define cyrt_line_of(code, offset) PyCode_Addr2Line((PyCodeObject*)(code), offset)
    #define cyrt_items(items) (((PyTupleObject*)(items))->ob_item)
    """
    int cyrt_line_of(PyObject* code, int offset)
    PyObject** cyrt_items(object items)

cdef extern from "Python.h":
    object PyObject_Vectorcall(object callee, PyObject** values, size_t count, PyObject* keywords)

cdef extern from *:
    """
    #define cyrt_returned(result) (result)
    """
    object cyrt_returned(PyObject* result)      # raises the error that is set if it is NULL

cdef enum:
    MOST_VALUES = 24        # values of a node, and arguments of a function of a rule
    MOST_ARGUMENTS = 25     # the same, and the array that the function adds to
    MOST_LEVELS = 60
    MOST_SPARE_NODES = 65536    # a tape with more nodes does not leave its memory to the next
    # Where a function of a rule finds an argument that is not a value of the node.
    GRADIENT = -1
    WANTED = -2

# A value of a node is a call's argument, the shape, type or device of one, or the result.
cdef enum Kind:
    ARGUMENT
    SHAPE
    DTYPE
    DEVICE
    RESULT

cdef int ADD = op_code("add")
# The package's folder: errors name the first line of code outside it.
cdef str folder = os.path.join(os.path.dirname(os.path.dirname(catalogue.__file__)), "")
cdef dict rules = {}        # by function
cdef PyObject* rules_of_ops[MAX_OPS]
memset(rules_of_ops, 0, sizeof(rules_of_ops))


# -- rules -----------------------------------------------------------------------------------------


@cython.final
cdef class Part:
    """A function of a rule: it computes the gradients of one operand or more."""
    cdef object backward, composed, into
    cdef int num_slots, num_arguments
    cdef short[MOST_OPERANDS] slots
    cdef short[MOST_VALUES] arguments


@cython.final
cdef class GradientPlan:
    """The values that a call keeps if certain operands are followed, and what takes them."""
    cdef list parts
    cdef int num_values
    cdef short[MOST_VALUES] kinds
    cdef short[MOST_VALUES] positions


cdef tuple parameters_of(object function):
    return tuple(inspect.signature(function).parameters)


cdef int positional_of(object function) except -1:
    """Return the number of a function's parameters that are not given by name only."""
    return sum([each.kind != each.KEYWORD_ONLY
                for each in inspect.signature(function).parameters.values()])


cdef class Rule:
    """How one function is differentiated."""

    def __init__(self, function, tuple parameters, tuple operands):
        self.function, self.parameters = function, parameters
        self.name = getattr(function, "__name__", repr(function))
        self.num_operands, self.num_positional = len(operands), positional_of(function)
        self.keywords = parameters[self.num_positional:]
        if self.num_operands > MOST_OPERANDS:
            raise ValueError(f"{self.name}: expected at most {<int>MOST_OPERANDS} operands")
        for i, each in enumerate(operands):
            self.operands[i] = parameters.index(each)
        self.out = parameters.index("out") if "out" in parameters else -1
        self.parts, self.plans = [], {}


cdef object source_of(Rule rule, str name):
    """Return the kind and the position of what a parameter of a rule's function stands for."""
    if name == "result":
        return RESULT, 0
    if name in rule.parameters:
        return ARGUMENT, rule.parameters.index(name)
    for end, kind in (("_shape", SHAPE), ("_dtype", DTYPE), ("_device", DEVICE)):
        if name.endswith(end) and name.removesuffix(end) in rule.parameters:
            return kind, rule.parameters.index(name.removesuffix(end))
    raise TypeError(f"a gradient of {rule.name}: expected g, wanted, result, or a parameter of "
                    f"{rule.name}{rule.parameters}, perhaps with _shape, _dtype or _device, got "
                    f"{name!r}")


cdef GradientPlan make_plan(Rule rule, unsigned int operands):
    cdef Thread* thread = this_thread()
    # The collector may run finalizers here: what they compute does not come between the parents of
    # the node that begins.
    thread.suspended += 1
    try:
        return new_plan(rule, operands)
    finally:
        thread.suspended -= 1


cdef GradientPlan new_plan(Rule rule, unsigned int operands):
    cdef GradientPlan plan = GradientPlan()
    cdef Part part
    cdef list sources = []
    plan.parts = []
    for slots, backward, composed, into in rule.parts:
        if not rule.sequence and not any([operands >> each & 1 for each in slots]):
            continue
        part = Part()
        part.backward, part.composed, part.into = backward, composed, into
        part.num_slots = len(slots)
        for i, each in enumerate(slots):
            part.slots[i] = each
        names = parameters_of(backward)
        part.num_arguments = len(names)
        for i, name in enumerate(names):
            if name == "g":
                part.arguments[i] = GRADIENT
            elif name == "wanted":
                part.arguments[i] = WANTED
            else:
                source = source_of(rule, name)
                if source not in sources:
                    sources.append(source)
                part.arguments[i] = sources.index(source)
        plan.parts.append(part)
    if len(sources) > MOST_VALUES:
        raise ValueError(f"a gradient of {rule.name} needs too many values")
    plan.num_values = len(sources)
    for i, (kind, position) in enumerate(sources):
        plan.kinds[i], plan.positions[i] = kind, position
    return plan


cdef inline PyObject* plan_of(Rule rule, unsigned int operands) except NULL:
    """Return the plan, to which the rule has a reference."""
    if rule.last_plan is None or rule.last_operands != operands:
        plan = rule.plans.get(operands)
        if plan is None:
            # Another thread may have made it meanwhile, and its calls hold no reference.
            plan = rule.plans.setdefault(operands, make_plan(rule, operands))
        rule.last_plan, rule.last_operands = plan, operands
    return <PyObject*>rule.last_plan


def register(function, operands, backward, *, composed=None, into=None,
             bint sequence=False, bint strict=True):
    """Say how a function is differentiated.

    Parameters
    ----------
    function : callable
        The function, which records its calls by `record_call` or is `differentiable`.
    operands : str or tuple of str
        The parameters of the function whose gradients `backward` computes. A function may be
        registered several times, for other operands each time.
    backward : callable
        It returns the gradient of the operand, or a tuple of the gradients of several; None is
        zero. The names of its parameters say what it needs: ``g`` is the gradient of the result
        (if there are several results, nested or not, a list of them, with None for zero),
        ``result`` is the result, and ``wanted`` is a tuple of bool that says of which operands the
        gradient is used. ``NAME`` is the function's argument of that name; ``NAME_shape``,
        ``NAME_dtype`` and ``NAME_device`` are its shape, type and device. What is not named is not
        kept.
    composed : callable, optional
        It has the parameters of `backward` and returns the same gradients, computed by functions
        that have rules. It is called where an outer level differentiates the gradient, if
        `backward` calls a function that has none.
    into : callable, optional
        It is for a single operand. Its first parameter is an array that the tape owns, to which it
        adds the gradient of the operand, in place; the parameters of `backward` follow.
    sequence : bool
        Whether the operand is a sequence of arrays: `backward` returns a list of gradients.
    strict : bool
        Whether gradients have the shapes of the operands. Otherwise they have the shape of the
        result, and are summed over the dimensions along which the operand was broadcast.
    """
    cdef Rule rule
    names = (operands,) if isinstance(operands, str) else tuple(operands)
    if composed is not None and parameters_of(composed) != parameters_of(backward):
        raise TypeError(f"the composed gradient of {function.__name__}: expected the parameters "
                        f"{parameters_of(backward)}, got {parameters_of(composed)}")
    if into is not None and parameters_of(into)[1:] != parameters_of(backward):
        raise TypeError(f"the gradient of {function.__name__} that is added: expected an array and "
                        f"the parameters {parameters_of(backward)}, got {parameters_of(into)}")
    rule = rules.get(function)
    if rule is None or rule.num_operands == 0:
        rule = Rule(function, parameters_of(function), names)
        rule.sequence, rule.strict = sequence, strict
        add_rule(rule)
        first = 0
    else:
        first = rule.num_operands
        for each in names:
            rule.operands[rule.num_operands] = rule.parameters.index(each)
            rule.num_operands += 1
    rule.parts.append((tuple(range(first, first + len(names))), backward, composed, into))
    make_plan(rule, (1 << rule.num_operands) - 1)       # checks the names
    rule.plans.clear()
    rule.last_plan = None


def register_constant(function):
    """Say that a function's result has no gradient: it does not change, or has no such type."""
    cdef Rule rule = Rule(function, parameters_of(function), ())
    rule.constant = True
    add_rule(rule)


def refuse(function, str reason not None):
    """Say that a function cannot be differentiated, and why."""
    cdef Rule rule = Rule(function, parameters_of(function), ())
    rule.refusal = reason
    add_rule(rule)


cdef int add_rule(Rule rule) except -1:
    op = getattr(rule.function, "operation", None)
    rules[rule.function] = rule
    if op is not None:
        rules_of_ops[op] = <PyObject*>rule
    return 0


def kind_of_rule(function):
    """Return "gradient", "constant", or the reason why a function is refused; None without a
    rule."""
    cdef Rule rule = rules.get(function)
    if rule is None:
        return None
    return "constant" if rule.constant else rule.refusal or "gradient"


cdef inline PyObject* rule_of(int op) except NULL:
    """Return the rule of an elementwise operation."""
    cdef PyObject* rule = rules_of_ops[op]
    if rule == NULL or (<Rule>rule).refusal is not None:
        reason = "there is no gradient" if rule == NULL else (<Rule>rule).refusal
        raise TypeError(f"{catalogue.OPS[op]}: {reason}; stop_gradient() makes a constant of the "
                        "argument")
    return rule


# -- recording -------------------------------------------------------------------------------------


# The memory of a tape that has ended, for the next one.
cdef struct Spare:
    Node* nodes
    unsigned long long* masks
    int* parents
    PyObject** values
    long long* sizes
    int most_nodes, most_parents, most_values, most_sizes

cdef Spare spare
memset(&spare, 0, sizeof(spare))


@cython.final
@cython.no_gc_clear
cdef class Tape:
    def __cinit__(self):
        taping.num_tapes += 1
        self.nodes, self.masks, self.parents = spare.nodes, spare.masks, spare.parents
        self.values, self.sizes = spare.values, spare.sizes
        self.most_nodes, self.most_parents = spare.most_nodes, spare.most_parents
        self.most_values, self.most_sizes = spare.most_values, spare.most_sizes
        memset(&spare, 0, sizeof(spare))
        self.leaves = []

    def __dealloc__(self):
        cdef int i
        for i in range(self.num_nodes):
            drop_values(self, &self.nodes[i])
            drop(self.nodes[i].rule)
            drop(self.nodes[i].plan)
            drop(self.nodes[i].code)
        taping.num_tapes -= 1
        if spare.nodes == NULL and self.most_nodes <= MOST_SPARE_NODES:
            spare.nodes, spare.masks, spare.parents = self.nodes, self.masks, self.parents
            spare.values, spare.sizes = self.values, self.sizes
            spare.most_nodes, spare.most_parents = self.most_nodes, self.most_parents
            spare.most_values, spare.most_sizes = self.most_values, self.most_sizes
            return
        free(self.nodes)
        free(self.masks)
        free(self.parents)
        free(self.values)
        free(self.sizes)


cdef inline void drop(PyObject* owned) noexcept:
    if owned != NULL:
        Py_DECREF(<object>owned)


cdef void drop_values(Tape tape, Node* node) noexcept:
    cdef int i
    cdef PyObject* value
    for i in range(node.first_value, node.first_value + node.num_values):
        value, tape.values[i] = tape.values[i], NULL
        drop(value)


cdef void* grow(void* old, int* most, int needed, size_t size) except NULL:
    cdef int room = 2 * needed + 64
    cdef void* grown = reallocate(old, room * size)
    most[0] = room
    return grown


cdef inline int reserve(Tape tape, int parents, int values, int sizes) except -1:
    """Make room for a node."""
    if tape.num_nodes >= tape.most_nodes or tape.num_parents + parents > tape.most_parents \
            or tape.num_values + values > tape.most_values \
            or tape.num_sizes + sizes > tape.most_sizes:
        return make_room(tape, parents, values, sizes)
    return 0


cdef int make_room(Tape tape, int parents, int values, int sizes) except -1:
    cdef int most = tape.most_nodes
    if tape.num_nodes + 1 > tape.most_nodes:
        tape.nodes = <Node*>grow(tape.nodes, &most, tape.num_nodes + 1, sizeof(Node))
        tape.masks = <unsigned long long*>grow(
            tape.masks, &tape.most_nodes, tape.num_nodes + 1, sizeof(unsigned long long))
        if this_thread().current == <void*>tape:
            this_thread().masks = tape.masks
    if tape.num_parents + parents > tape.most_parents:
        tape.parents = <int*>grow(tape.parents, &tape.most_parents, tape.num_parents + parents,
                                  sizeof(int))
    if tape.num_values + values > tape.most_values:
        tape.values = <PyObject**>grow(tape.values, &tape.most_values, tape.num_values + values,
                                       sizeof(PyObject*))
    if tape.num_sizes + sizes > tape.most_sizes:
        tape.sizes = <long long*>grow(tape.sizes, &tape.most_sizes, tape.num_sizes + sizes,
                                      sizeof(long long))
    return 0


cdef inline int add_node(Tape tape, NodeKind kind, int num_parents, int num_values, Array x,
                  unsigned long long mask) except -1:
    """Append a node for the value x, whose parents are already behind the others'. Return its
    number. There is room for the values, which are added afterwards."""
    cdef Node* node
    cdef int i, ndim = 0 if x is None else x.ndim_
    reserve(tape, num_parents, num_values, ndim)
    node = &tape.nodes[tape.num_nodes]
    node.rule = node.plan = node.code = NULL
    node.offset, node.dtype, node.result, node.versions = 0, 0, 0, 0
    node.kind, node.num_parents, node.num_values, node.ndim = kind, num_parents, 0, ndim
    node.first_parent, node.first_value = tape.num_parents, tape.num_values
    node.first_size = tape.num_sizes
    if x is not None:
        node.dtype = x.code
        for i in range(ndim):
            tape.sizes[tape.num_sizes + i] = x.dims[i]
    tape.num_parents += num_parents
    tape.num_values += num_values
    tape.num_sizes += ndim
    tape.masks[tape.num_nodes] = mask
    tape.num_nodes += 1
    return tape.num_nodes - 1


cdef inline void follow(Tape tape, Array x, int node) noexcept:
    cdef Block* block = block_of(x)
    x.tape, x.node = tape.number, node
    x.version = 0 if block == NULL else block.version


cdef inline int node_of(const Thread* thread, object x, unsigned long long* mask) except -2:
    """Return the node of an operand that is followed, and add its levels to the mask; else -1."""
    if not is_followed_by(thread, x):
        return -1
    mask[0] |= thread.masks[(<Memory>x).node] & thread.live
    return (<Memory>x).node


cdef int check_others(Rule rule, PyObject** arguments, Py_ssize_t count) except -1:
    """Raise TypeError for an argument that is followed and is no operand."""
    cdef int i, j
    for i in range(count):
        if i == rule.out:
            continue
        value = <object>arguments[i]
        for j in range(rule.num_operands):
            if rule.operands[j] == i and (rule.sequence or isinstance(value, Memory)):
                break
        else:
            if is_any_followed(value):
                raise TypeError(
                    f"{rule.name}: {rule.parameters[i] if i < len(rule.parameters) else i}: "
                    "there is no gradient of this argument; stop_gradient() makes a constant of it")
    return 0


cdef inline int check_out(Tape tape, Rule rule, object out, Call* call) except -1:
    """Raise ValueError if `out` shares memory with an argument of a differentiated function."""
    cdef Block* block
    if not isinstance(out, Array):
        raise TypeError(f"{rule.name}: out: expected an Array for a value that is differentiated, "
                        f"got {type(out).__name__}")
    block = block_of(<Memory>out)
    call.inside, call.before = is_followed(out), 0 if block == NULL else block.version
    for leaf in tape.leaves:
        if overlaps(<Array>leaf, <Array>out):
            refuse_write(rule)
    return 0


cdef int refuse_write(Rule rule) except -1:
    name = "x[key] = value" if rule.function is functions.put_at else rule.name
    raise ValueError(
        f"{name}: an argument of a differentiated function is written in place; write into a copy, "
        "x = x.copy(), or compute a new array, such as x + y or cyrt.where(...)")


# The state of a call before the function runs.
cdef struct Call:
    unsigned long long mask         # levels that follow an operand; 0: the result is a constant
    unsigned long long versions     # sum of the versions of the arguments that are kept
    unsigned int operands           # bit of each operand that is followed
    int num_parents
    unsigned int before             # version of the memory of `out`
    bint inside                     # `out` was followed
    PyObject* plan                  # the rule's for these operands; borrowed


cdef inline int begin_call(Rule rule, Thread* thread, PyObject** arguments, Py_ssize_t count,
                           Call* call) except -1:
    """Find the operands that are followed, and suspend the tape until the function has run."""
    cdef Tape tape = <Tape>thread.current
    cdef GradientPlan plan
    cdef PyObject* out = NULL
    cdef PyObject* value
    cdef int i, at, node
    call.mask, call.versions, call.operands, call.inside = 0, 0, 0, False
    call.num_parents = rule.num_operands
    if rule.sequence:
        sequence = <object>arguments[rule.operands[0]]
        call.num_parents = len(sequence)
        reserve(tape, call.num_parents, 0, 0)
        for i in range(call.num_parents):
            tape.parents[tape.num_parents + i] = node_of(thread, sequence[i], &call.mask)
        call.operands = call.mask != 0
    else:
        reserve(tape, MOST_OPERANDS, 0, 0)
        for i in range(rule.num_operands):
            at = rule.operands[i]
            node = -1 if at >= count else node_of(thread, <object>arguments[at], &call.mask)
            tape.parents[tape.num_parents + i] = node
            call.operands |= <unsigned int>(node >= 0) << i
    tape.overwritten = None
    if rule.out >= 0 and rule.out < count and arguments[rule.out] != <PyObject*>None:
        out = arguments[rule.out]
        check_out(tape, rule, <object>out, call)
    if call.mask:
        call.plan = plan_of(rule, call.operands)
        plan = <GradientPlan>call.plan
        for i in range(plan.num_values):
            if plan.kinds[i] != ARGUMENT or plan.positions[i] >= count:
                continue
            value = arguments[plan.positions[i]]
            if value == out:
                keep_overwritten(tape, <Array>out, call.inside)
                value = <PyObject*>tape.overwritten
            call.versions += version_of(value)
    thread.suspended += 1
    return 0


cdef int keep_overwritten(Tape tape, Array out, bint inside) except -1:
    """Copy what a call overwrites and its gradient needs: the copy has the node of the value."""
    cdef Thread* thread = this_thread()
    if tape.overwritten is None:
        thread.suspended += 1
        try:
            tape.overwritten = out.copy()
        finally:
            thread.suspended -= 1
        if inside:
            follow(tape, tape.overwritten, out.node)
    return 0


cdef inline unsigned long long version_of(PyObject* value) except? 0:
    """Return the version of an array's memory, or the sum of those of several arrays."""
    cdef Block* block
    if <void*>Py_TYPE(<object>value) != array_type:
        return 0 if type(<object>value) is float else version_of_others(<object>value)
    block = block_of(<Memory>value)
    return 0 if block == NULL else block.version


cdef unsigned long long version_of_others(object value) except? 0:
    cdef unsigned long long versions = 0
    cdef Block* block
    if isinstance(value, (tuple, list)):
        for each in value:
            versions += version_of(<PyObject*>each)
    elif isinstance(value, Memory):
        block = block_of(<Memory>value)
        versions = 0 if block == NULL else block.version
    return versions


cdef bint is_among(object result, PyObject** arguments, Py_ssize_t count) noexcept:
    cdef int i
    for i in range(count):
        if arguments[i] == <PyObject*>result:
            return True
    return False


cdef list leaves_of(object result):
    """Return the results of a call: a tuple or list of them may have others inside."""
    cdef list leaves = []
    if not isinstance(result, (tuple, list)):
        return [result]
    for each in result:
        leaves += leaves_of(each)
    return leaves


cdef inline object end_call(Rule rule, Tape tape, PyObject** arguments, Py_ssize_t count,
                            const Call* call, object result, object out):
    """Record a call, of which `out`, or None, has received the result. The tape records again."""
    cdef int node, output, i
    if call.mask == 0:
        if call.inside:
            overwrite_by_constants(tape, <Array>out, call.before)
            return result
        for each in leaves_of(result):
            if isinstance(each, Memory) and not is_among(each, arguments, count):
                (<Memory>each).tape = 0
        return result
    if isinstance(result, Array):
        if (<Array>result).code < FIRST_FLOAT:
            if out is None and not is_among(result, arguments, count):
                (<Memory>result).tape = 0
            return result
        if out is None and is_among(result, arguments, count):
            return result
        node = add_call(tape, rule, arguments, count, call, result, <Array>result)
        if out is not None:
            follow_write(tape, <Array>out, call.before)
        follow(tape, <Array>result, node)
        return result
    if not isinstance(result, (tuple, list)):
        return result
    node = add_call(tape, rule, arguments, count, call, result, None)
    leaves = leaves_of(result)
    tape.nodes[node].result = len(leaves)
    for i, each in enumerate(leaves):
        if isinstance(each, Array) and (<Array>each).code >= FIRST_FLOAT:
            reserve(tape, 1, 0, 0)
            tape.parents[tape.num_parents] = node
            output = add_node(tape, OUTPUT, 1, 0, <Array>each, call.mask)
            tape.nodes[output].result = i
            follow(tape, <Array>each, output)
    return result


cdef inline void follow_write(Tape tape, Array out, unsigned int before) noexcept:
    """Note that the tape has recorded a write into an array's memory."""
    cdef Block* block = block_of(out)
    if block != NULL:
        tape.written, tape.version_before = block, before
        tape.written_before = block.tape == (tape.number << 24 | block.generation & 0xffffff)
        block.tape = tape.number << 24 | block.generation & 0xffffff


cdef int overwrite_by_constants(Tape tape, Array out, unsigned int before) except -1:
    """Note that constants have overwritten an array that the tape follows."""
    cdef Block* block = block_of(out)
    if out.base is None:            # All that the block held is gone.
        out.tape = 0
        if block != NULL:
            block.tape = 0
        return 0
    follow_write(tape, out, before)
    follow(tape, out, add_node(tape, OUTPUT, 0, 0, out, 0))
    return 0


cdef bint is_part(Array x, object key, Array value) except -1:
    """Return whether an array is the view x[key]."""
    cdef Thread* thread = this_thread()
    cdef Array view
    cdef int d
    thread.suspended += 1
    try:
        view = x[key]
    finally:
        thread.suspended -= 1
    if view.address != value.address or view.code != value.code \
            or not has_shape(view, value.ndim_, value.dims):
        return False
    for d in range(view.ndim_):
        if view.dims[d] != 1 and view.steps[d] != value.steps[d]:
            return False
    return True


cdef int accept_write(Array x, object key, object value) except -1:
    """In ``x[key] += 1`` Python writes a view of x, and then assigns the view to x[key]: if nothing
    but that view was written since, x is not stale."""
    cdef Tape tape = <Tape>this_thread().current
    cdef Block* block
    cdef Array part
    if not isinstance(value, Array):
        return 0
    part, block = <Array>value, block_of(x)
    if part.tape != tape.number or block == NULL or block_of(part) != block \
            or tape.written != block or part.version != block.version or part is x:
        return 0
    if x.tape == tape.number:
        if x.version == tape.version_before and is_part(x, key, part):
            x.version = block.version
    elif not tape.written_before and is_part(x, key, part):
        block.tape = 0              # recording the assignment sets it again
    return 0


def record_put(Array x not None, key, value):
    """Assign ``x[key] = value`` as one call if the tape follows one of them. Return whether it
    does."""
    cdef Thread* thread = this_thread()
    if isinstance(value, (list, tuple)) and is_any_followed(value):
        value = functions.asarray(value, dtype=x.dtype, device=x.device)
    if thread.tape and not thread.suspended and thread.live:
        accept_write(x, key, value)
    if not (is_followed(x) or is_followed(value)):
        return False
    record_call(functions.put_at, (x, key, value))
    return True


cdef int add_call(Tape tape, Rule rule, PyObject** arguments, Py_ssize_t count, const Call* call,
                  object result, Array x) except -1:
    cdef GradientPlan plan = <GradientPlan>call.plan
    cdef int i, at, number = add_node(tape, CALL, call.num_parents, plan.num_values, x, call.mask)
    cdef Node* node = &tape.nodes[number]
    cdef PyObject* value
    node.rule, node.plan = <PyObject*>rule, <PyObject*>plan
    Py_INCREF(rule)
    Py_INCREF(plan)
    node.code = cyrt_calling_code(<PyObject*>folder, &node.offset)
    node.versions = call.versions
    for i in range(plan.num_values):
        at = plan.positions[i]
        if plan.kinds[i] == RESULT:
            value = <PyObject*>result
            node.versions += version_of(value)
        elif plan.kinds[i] == ARGUMENT and at < count and tape.overwritten is None:
            value = arguments[at]
        else:
            other = other_value(tape, rule, <Kind>plan.kinds[i],
                                None if at >= count else <object>arguments[at], result)
            value = <PyObject*>other
        Py_INCREF(<object>value)
        tape.values[node.first_value + i] = value
        node.num_values = i + 1
    tape.overwritten = None
    return number


cdef object other_value(Tape tape, Rule rule, Kind kind, object value, object result):
    """Return what is kept of an argument that has been overwritten, or whose values are not
    needed."""
    cdef Thread* thread = this_thread()
    thread.suspended += 1       # as in make_plan: the node is not complete
    try:
        return own_value(tape, rule, kind, value, result)
    finally:
        thread.suspended -= 1


cdef object own_value(Tape tape, Rule rule, Kind kind, object value, object result):
    if tape.overwritten is not None and value is result:
        value = tape.overwritten
    if kind == SHAPE:
        if isinstance(value, Array):
            return shape_of(<Array>value)
        return [each.shape for each in value] if rule.sequence else getattr(value, "shape", ())
    if kind == DTYPE:
        return getattr(value, "dtype", None)
    if kind == DEVICE:
        return getattr(value, "device", None)
    return value


cdef object call_operation(int op, PyObject** operands, int count, Operation operation):
    cdef Thread* thread = this_thread()
    cdef PyObject* rule
    cdef PyObject* result
    cdef Call call
    cdef bint followed = False
    cdef int i
    for i in range(count):
        if isinstance(<object>operands[i], (list, tuple)):
            return call_on_sequence(op, operands, count, operation)
        followed = followed or is_followed_by(thread, <object>operands[i])
    if not followed:
        return cyrt_returned(operation(op, operands))
    rule = rule_of(op)
    begin_call(<Rule>rule, thread, operands, count, &call)
    result = operation(op, operands)
    thread.suspended -= 1
    return end_call(<Rule>rule, <Tape>thread.current, operands, count, &call,
                    cyrt_returned(result), <object>operands[count - 1])


cdef object call_on_sequence(int op, PyObject** operands, int count, Operation operation):
    """Call an operation on an array and a sequence, which becomes an array."""
    cdef PyObject* arrays[3]
    cdef list made = []
    cdef object array = None
    cdef int i
    for i in range(count - 1):
        if isinstance(<object>operands[i], Array):
            array = <object>operands[i]
    for i in range(count):
        arrays[i] = operands[i]
        if isinstance(<object>operands[i], (list, tuple)):
            made.append(functions.weak_array(array, <object>operands[i]))
            arrays[i] = <PyObject*>made[len(made) - 1]
    return call_operation(op, arrays, count, operation)


cdef object record_call(object function, tuple arguments):
    cdef Rule rule = rules.get(function)
    cdef Thread* thread = this_thread()
    cdef Call call
    cdef PyObject** items = cyrt_items(arguments)
    cdef Py_ssize_t count = len(arguments)
    cdef object result, out = None
    if rule is None:
        raise TypeError(f"{getattr(function, '__name__', function)}: the function has no gradient; "
                        "stop_gradient() makes a constant of its argument")
    if rule.refusal is not None:
        raise TypeError(f"{rule.name}: {rule.refusal}")
    if not rule.constant:
        check_others(rule, items, count)
    begin_call(rule, thread, items, count, &call)
    try:
        if rule.num_positional < count:
            result = PyObject_Vectorcall(function, items, rule.num_positional,
                                         <PyObject*>rule.keywords)
        else:
            result = PyObject_Vectorcall(function, items, count, NULL)
    finally:
        thread.suspended -= 1
    if rule.out >= 0 and rule.out < count:
        out = arguments[rule.out]
    return end_call(rule, <Tape>thread.current, items, count, &call, result, out)


cdef int refuse_number(object x, str what) except -1:
    if taping.recording and is_followed(x):
        raise TypeError(f"{what}: an array that is differentiated would become a constant; "
                        "stop_gradient() makes one of it")
    return 0


def refuse_as_number(value, str what not None):
    """Raise TypeError if the tape follows an array whose value becomes a number: a constant."""
    refuse_number(value, what)


def recorded(function, tuple arguments not None):
    """Return ``function(*arguments)``, recorded as one call: see `record_call` in tape.pxd."""
    return record_call(function, arguments)


@cython.final
@cython.no_gc
cdef class Differentiable:
    """A function whose calls are recorded as a whole if an argument is followed; `differentiable`
    makes it."""

    cdef Vectorcall vectorcall
    cdef object function
    cdef tuple names
    cdef list defaults          # the parameters' defaults, in order
    cdef int num_positional
    cdef dict __dict__

    def __init__(self, function):
        parameters = inspect.signature(function).parameters.values()
        if any([each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters]):
            raise TypeError(f"{function.__name__}: a differentiable function takes no *arguments")
        self.vectorcall, self.function = call_differentiable, function
        self.names = tuple([each.name for each in parameters])
        self.defaults = [each.default for each in parameters]
        self.num_positional = positional_of(function)
        vars(self).update(__name__=function.__name__, __qualname__=function.__qualname__,
                          __doc__=function.__doc__, __module__=function.__module__,
                          __wrapped__=function)

    def __call__(self, *arguments, **keywords):
        return self.function(*arguments, **keywords)

    def __repr__(self):
        return f"<function {self.__module__}.{self.__name__}>"

    def __reduce__(self):
        return self.__qualname__

    cdef tuple bind(self, PyObject** values, Py_ssize_t count, PyObject* keywords):
        """Return all arguments, in the order of the parameters; None if they do not fit."""
        cdef list bound = self.defaults.copy()
        cdef Py_ssize_t i
        if count > self.num_positional:
            return None
        for i in range(count):
            bound[i] = <object>values[i]
        if keywords != NULL:
            for i, name in enumerate(<tuple>keywords):
                if name not in self.names or self.names.index(name) < count:
                    return None
                bound[self.names.index(name)] = <object>values[count + i]
        for each in bound:
            if each is inspect.Parameter.empty:
                return None
        return tuple(bound)


cdef bint is_any_followed(object value) except -1:
    """Return whether the tape follows a value, or one in nested sequences."""
    if isinstance(value, Memory):
        return is_followed(value)
    if isinstance(value, (list, tuple)):
        for each in value:
            if is_any_followed(each):
                return True
    return False


cdef bint is_one_followed(PyObject** values, Py_ssize_t count) except -1:
    cdef Py_ssize_t i
    for i in range(count):
        if is_any_followed(<object>values[i]):
            return True
    return False


cdef object call_differentiable(object callee, PyObject** values, size_t flagged,
                                PyObject* keywords):
    cdef Differentiable self = <Differentiable>callee
    cdef Py_ssize_t count, given, i
    if taping.recording:
        count = given = PyVectorcall_NARGS(flagged)
        if keywords != NULL:
            given += len(<tuple>keywords)
        for i in range(given):
            if is_any_followed(<object>values[i]):
                bound = self.bind(values, count, keywords)
                if bound is None:
                    break               # the call raises the error
                return record_call(self, bound)
    return PyObject_Vectorcall(self.function, values, flagged, keywords)


cdef Differentiable _first = Differentiable.__new__(Differentiable)
offer_vectorcall(_first, &_first.vectorcall)


def differentiable(function, /):
    """Return a function whose calls are recorded as a whole if an argument is followed.

    Otherwise it does what the given function does. It has parameters of fixed names only, and needs
    a rule: see `register`, `register_constant` and `refuse`.
    """
    return Differentiable(function)


# -- gradients -------------------------------------------------------------------------------------


cdef object adapt = None
cdef object own = None


def bind(adapt_, own_):
    """Set the function that adapts a gradient to its operand, ``adapt(gradient, shape, dtype,
    broadcast, name)``, and the one that returns a new array with the values of a gradient, or with
    zeros for None: ``own(gradient, shape, dtype, device)``."""
    global adapt, own
    adapt, own = adapt_, own_


cdef str call_site_of(const Node* node):
    code = <object>node.code if node.code != NULL else None
    if code is None:
        return "an unknown line"
    return f"{code.co_filename}:{cyrt_line_of(node.code, node.offset)}"


cdef int check_values(Tape tape, const Node* node) except -1:
    """Raise RuntimeError if a value was dropped, or written since."""
    cdef unsigned long long versions = 0
    cdef int i
    for i in range(node.first_value, node.first_value + node.num_values):
        if tape.values[i] == NULL:
            raise RuntimeError(f"the values that the gradient of {(<Rule>node.rule).name} needs "
                               "were dropped: the tape that recorded it was used up")
        versions += version_of(tape.values[i])
    if versions != node.versions:
        raise RuntimeError(
            f"the gradient of {(<Rule>node.rule).name}, called at {call_site_of(node)}, needs a "
            "value that was written in place since")
    return 0


@cython.final
cdef class Gradients:
    """The gradients of nodes from `start` on."""
    cdef Tape tape
    cdef int start, count
    cdef PyObject** items       # owned
    cdef char* made             # whether the tape made the array, which nobody else has
    cdef char* needed           # whether the node depends on an argument

    def __cinit__(self, Tape tape, int start):
        self.tape, self.start, self.count = tape, start, tape.num_nodes - start
        self.items = <PyObject**>allocate_zeroed((self.count + 1) * sizeof(PyObject*))
        self.made = <char*>allocate_zeroed(2 * self.count + 2)
        self.needed = self.made + self.count + 1

    def __dealloc__(self):
        cdef int i
        if self.items != NULL:
            for i in range(self.count):
                drop(self.items[i])
        free(self.items)
        free(self.made)

    cdef object take(self, int node):
        """Return a node's gradient, and drop it here; None: it is zero."""
        cdef PyObject* found = self.items[node - self.start]
        if found == NULL:
            return None
        result = <object>found
        self.items[node - self.start] = NULL
        Py_DECREF(result)
        return result

    cdef int put(self, int node, object gradient) except -1:
        cdef PyObject* old = self.items[node - self.start]
        Py_INCREF(gradient)
        self.items[node - self.start] = <PyObject*>gradient
        drop(old)
        return 0

    cdef int add(self, int node, object gradient, Rule rule) except -1:
        """Add a gradient, if the node needs it."""
        cdef int i = node - self.start
        cdef const Node* entry
        if node < self.start or gradient is None or not self.needed[i]:
            return 0
        entry = &self.tape.nodes[node]
        if not isinstance(gradient, Array) or (<Array>gradient).code != entry.dtype \
                or not has_shape(<Array>gradient, entry.ndim, self.tape.sizes + entry.first_size):
            gradient = adapt(
                gradient, tuple_of_sizes(entry.ndim, self.tape.sizes + entry.first_size),
                DTYPES[entry.dtype], rule is not None and not rule.strict,
                "vjp" if rule is None else rule.name)
        if self.items[i] == NULL:
            self.put(node, gradient)
        elif self.made[i] and this_thread().live == 0:
            ops.binary(ADD, <object>self.items[i], gradient, <object>self.items[i])
        else:
            self.put(node, ops.binary(ADD, <object>self.items[i], gradient, None))
            self.made[i] = True
        return 0

    cdef object owned(self, int node, int device):
        """Return the gradient so far, as an array that only the tape has."""
        cdef int i = node - self.start
        cdef const Node* entry = &self.tape.nodes[node]
        if not self.made[i] or self.items[i] == NULL:
            self.put(node, own(
                None if self.items[i] == NULL else <object>self.items[i],
                tuple_of_sizes(entry.ndim, self.tape.sizes + entry.first_size),
                DTYPES[entry.dtype], device))
            self.made[i] = True
        return <object>self.items[i]

    cdef int add_output(self, int node, int result, int count, object gradient) except -1:
        """Store the gradient of one of a call's results."""
        cdef int i = node - self.start
        if self.items[i] == NULL:
            self.put(node, [None] * count)
        (<list>self.items[i])[result] = gradient
        return 0

    cdef int pass_call(self, int number, object gradient) except -1:
        """Compute the gradients of a call's operands."""
        cdef Tape tape = self.tape
        cdef const Thread* thread = this_thread()
        cdef Node node = tape.nodes[number]         # the tape may grow
        cdef Rule rule = <Rule>node.rule
        cdef PyObject* first[MOST_ARGUMENTS]        # what is added to, and the arguments
        cdef PyObject** arguments = first + 1
        cdef Part part
        cdef int i
        check_values(tape, &node)
        for each in (<GradientPlan>node.plan).parts:
            part = <Part>each
            if not self.is_wanted(&node, rule, part):
                continue
            wanted = None
            for i in range(part.num_arguments):
                if part.arguments[i] >= 0:
                    arguments[i] = tape.values[node.first_value + part.arguments[i]]
                elif part.arguments[i] == GRADIENT:
                    arguments[i] = <PyObject*>gradient
                else:
                    wanted = self.wanted(&node, rule, part)
                    arguments[i] = <PyObject*>wanted
            if part.into is not None and thread.live == 0:
                target = self.owned(tape.parents[node.first_parent + part.slots[0]],
                                    device_of(<Array>gradient))
                first[0] = <PyObject*>target
                PyObject_Vectorcall(part.into, first, part.num_arguments + 1, NULL)
                continue
            backward = part.backward
            if part.composed is not None and thread.live \
                    and is_one_followed(arguments, part.num_arguments):
                backward = part.composed
            found = PyObject_Vectorcall(backward, arguments, part.num_arguments, NULL)
            if rule.sequence or part.num_slots != 1:
                self.add_several(&node, rule, part, found)
            else:
                self.add(tape.parents[node.first_parent + part.slots[0]], found, rule)
        return 0

    cdef inline bint needs(self, int node) noexcept:
        return node >= self.start and self.needed[node - self.start]

    cdef inline bint is_wanted(self, const Node* node, Rule rule, Part part) noexcept:
        """Return whether the gradient of one of a part's operands is used."""
        cdef const int* parents = self.tape.parents + node.first_parent
        cdef int i
        if rule.sequence:
            for i in range(node.num_parents):
                if self.needs(parents[i]):
                    return True
            return False
        for i in range(part.num_slots):
            if self.needs(parents[part.slots[i]]):
                return True
        return False

    cdef tuple wanted(self, const Node* node, Rule rule, Part part):
        cdef int i
        return tuple([self.needs(self.tape.parents[node.first_parent + (i if rule.sequence
                                                                        else part.slots[i])])
                      for i in range(node.num_parents if rule.sequence else part.num_slots)])

    cdef int add_several(self, const Node* node, Rule rule, Part part, object found) except -1:
        cdef int i, count = node.num_parents if rule.sequence else part.num_slots
        if not isinstance(found, (tuple, list)) or len(found) != count:
            raise TypeError(f"the gradient of {rule.name}: expected a tuple of {count}, got "
                            f"{type(found).__name__}")
        for i in range(count):
            self.add(self.tape.parents[node.first_parent + (i if rule.sequence
                                                            else part.slots[i])], found[i], rule)
        return 0


@cython.final
@cython.no_gc_clear
cdef class Level:
    """A function that is differentiated in this thread, from the call to its gradient."""

    def __cinit__(self):
        cdef Thread* thread = this_thread()
        self.closed = True          # until it is made
        if thread.live == 0 or thread.suspended:
            self.tape = Tape()
            self.tape.number = open_tape(thread)
            self.before, self.opened = thread[0], True
            thread.tape, thread.live, thread.suspended = self.tape.number, 0, 0
            thread.current, thread.masks = <void*>self.tape, self.tape.masks
        else:
            self.tape = <Tape>thread.current
        if self.tape.levels == MOST_LEVELS:
            raise RecursionError(f"more than {<int>MOST_LEVELS} gradients are nested")
        self.depth = self.tape.levels
        self.tape.levels += 1
        self.start, self.closed = self.tape.num_nodes, False
        thread.live |= <unsigned long long>1 << self.depth

    def __dealloc__(self):
        # An interrupt may come between the call that makes a level and the block that closes it.
        if not self.closed and this_thread().current == <void*>self.tape:
            self.end_level()

    cdef Array leaf(self, Array x):
        cdef Array view = view_of(x, x.code, x.ndim_, x.dims, x.steps, 0)
        cdef Tape tape = self.tape
        cdef unsigned long long mask = 0
        cdef int node
        reserve(tape, 1, 0, 0)
        tape.parents[tape.num_parents] = node_of(this_thread(), x, &mask)
        node = add_node(tape, LEAF, 1, 0, x, mask | <unsigned long long>1 << self.depth)
        self.num_leaves += 1
        tape.leaves.append(view)
        follow(tape, view, node)
        return view

    cdef int find_node(self, object x) except -2:
        cdef unsigned long long mask = 0
        cdef int node = node_of(this_thread(), x, &mask)
        return node if mask >> self.depth & 1 else -1

    cdef int stop_recording(self) noexcept:
        cdef Thread* thread = this_thread()
        if self.stopped:
            return 0
        self.stopped, self.end = True, self.tape.num_nodes
        thread.live &= ~(<unsigned long long>1 << self.depth)
        if self.opened:
            close_tape(self.tape.number)
            thread[0] = self.before
        return 0

    cdef int end_level(self) noexcept:
        cdef Tape tape = self.tape
        cdef int i
        self.stop_recording()
        self.closed = True
        tape.levels = self.depth
        del tape.leaves[len(tape.leaves) - self.num_leaves:]
        for i in range(self.start, tape.num_nodes):
            tape.masks[i] &= ~(<unsigned long long>1 << self.depth)
            if tape.masks[i] == 0 and tape.holders == 0:
                drop_values(tape, &tape.nodes[i])
        return 0

    cdef list differentiate(self, list nodes, list gradients, bint keep):
        cdef Tape tape = self.tape
        cdef Gradients found = Gradients(tape, self.start)
        cdef Node* node
        cdef int i, j, parent
        for i in range(self.start, self.end):
            if i < self.start + self.num_leaves:
                found.needed[i - self.start] = True
                continue
            node = &tape.nodes[i]
            for j in range(node.first_parent, node.first_parent + node.num_parents):
                parent = tape.parents[j]
                if parent >= self.start and found.needed[parent - self.start]:
                    found.needed[i - self.start] = True
                    break
        for number, gradient in zip(nodes, gradients):
            if number >= 0:
                found.add(number, gradient, None)
        keep = keep or tape.holders != 0 or not self.opened
        for i in range(self.end - 1, self.start + self.num_leaves - 1, -1):
            gradient = found.take(i)
            node = &tape.nodes[i]
            if gradient is not None:
                parent = tape.parents[node.first_parent] if node.num_parents else -1
                if node.kind == LEAF:
                    found.add(parent, gradient, None)
                elif node.kind == OUTPUT:
                    found.add_output(parent, node.result, tape.nodes[parent].result, gradient)
                else:
                    found.pass_call(i, gradient)
            if not keep:
                drop_values(tape, &tape.nodes[i])
        return [found.take(i) for i in range(self.start, self.start + self.num_leaves)]

    cdef int hold(self) noexcept:
        self.tape.holders += 1


# -- arrays ----------------------------------------------------------------------------------------


def detach(Array x not None):
    """Return an array of the same values that the tape does not follow: a view. It is a copy if the
    tape has recorded a write through `x`, for then no other array of the memory may be used."""
    cdef Thread* thread = this_thread()
    cdef Block* block = block_of(x)
    cdef Array constant
    if block != NULL and x.tape and x.tape == thread.tape and x.version == block.version \
            and block.tape == (x.tape << 24 | block.generation & 0xffffff):
        thread.suspended += 1
        try:
            constant = x.copy()
        finally:
            thread.suspended -= 1
    else:
        constant = view_of(x, x.code, x.ndim_, x.dims, x.steps, 0)
    constant.tape = 0
    return constant


def follows(list arrays not None):
    """Return whether the tape follows one of the arrays, and records now."""
    for each in arrays:
        if taping.recording and is_followed(each):
            return True
    return False


def num_levels():
    """Return how many levels the thread records now."""
    cdef unsigned long long live = this_thread().live
    cdef int count = 0
    while live:
        count += live & 1
        live >>= 1
    return count


def num_nodes():
    """Return how many nodes the tape has that the thread records on; 0 without one."""
    cdef Thread* thread = this_thread()
    return (<Tape>thread.current).num_nodes if thread.live else 0


def has_followed_since(int first):
    """Return whether a node depends on the arguments of a level that the thread records now.
    `first`: the first node that counts."""
    cdef Thread* thread = this_thread()
    cdef int i
    for i in range(first, num_nodes()):
        if (<Tape>thread.current).masks[i] & thread.live:
            return True
    return False


def versions_of(value):
    """Return a number that grows with each write to an array, or to an array of a nest, as long as
    a tape exists."""
    if isinstance(value, dict):
        return sum(map(versions_of, value.values()))
    if isinstance(value, (tuple, list)):
        return sum(map(versions_of, value))
    if is_dataclass(value) and not isinstance(value, type):
        return sum([versions_of(getattr(value, each.name)) for each in fields(value)])
    return version_of(<PyObject*>value)
