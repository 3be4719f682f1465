"""cuDNN through nvidia-cudnn-frontend: convolutions and attention.

Only the first call of each kind uses this module.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cyrt.driver.errors import CudaError, OutOfMemoryError
from cyrt.libs.library import Handle, Handles, Unsupported, dotted
from cyrt.runtime.ending import release_when_idle

MINIMUM_VERSION = 90000
MINIMUM_FRONTEND = 1, 18  # the first one whose graphs take integers as pointers and handles

DATA_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_approx_tanh", "silu": "swish"}
# cudnnStatus_t: the first status of each category that is an error.
STATUSES = {"NOT_INITIALIZED": 1001, "INTERNAL_ERROR": 4000, "EXECUTION_FAILED": 5000}
FORWARD, BACKWARD_DATA, BACKWARD_FILTER = "forward", "backward data", "backward filter"
# The numbers that name tensors to cuDNN.
IMAGE, FILTER, RESULT, BIAS = 1, 2, 3, 4
# Which tensor each kind of convolution computes.
COMPUTED = {FORWARD: RESULT, BACKWARD_DATA: IMAGE, BACKWARD_FILTER: FILTER}


class Cudnn:
    """cuDNN, opened by its frontend.

    Attributes
    ----------
    frontend : module
        The package ``cudnn``.
    version : int
        cuDNN's: 91900 for 9.19.0; `dotted` is it as text.
    """

    def __init__(self, frontend: Any) -> None:
        self.frontend = frontend
        self.version: int = frontend.backend_version()
        self.dotted = dotted(self.version)


def open_frontend(frontend: Any) -> tuple[Cudnn | None, str]:
    """Return the library that the package ``cudnn`` has opened, or None and why it cannot be
    used."""
    version = str(getattr(frontend, "__version__", "an unknown version"))
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < MINIMUM_FRONTEND:
        return None, f"nvidia-cudnn-frontend {version} is too old; 1.18 or newer is needed"
    try:
        library = Cudnn(frontend)
    except RuntimeError as error:
        return None, f"cuDNN cannot be opened: {error}"
    if library.version < MINIMUM_VERSION:
        return None, f"cuDNN {library.dotted} is too old; 9.0 or newer is needed"
    return library, ""


# The errors of cuda.pathfinder, ctypes and the frontend for a library that is absent, or of another
# version.
_NOT_LOADED = (ImportError, OSError, RuntimeError, AttributeError, AssertionError)


@functools.cache
def find() -> tuple[Cudnn | None, str]:
    """Find and open the library, once; return it, or None and why there is none."""
    from cuda import pathfinder  # it is not loaded before it is needed

    try:
        for name in ("cudart", "cudnn"):  # the frontend takes those that the process has loaded
            pathfinder.load_nvidia_dynamic_lib(name)
        frontend = importlib.import_module("cudnn")
    except _NOT_LOADED as error:
        return None, f"cuDNN is not found: {(str(error) or repr(error)).splitlines()[0]}"
    return open_frontend(frontend)


# Plans and their kernels live without a handle: a thread that ends takes only its own along.
_handles = Handles()


def _handle(library: Cudnn, ordinal: int, epoch: int) -> Any:
    """This thread's handle; the device's context is current."""
    key = id(library.frontend), ordinal, epoch
    if key not in _handles.by_device:
        # An int, or an object of the frontend from 1.28 on.
        with _LibraryErrors("cudnnCreate", library, "a handle"):
            value = library.frontend.create_handle()
        _handles.by_device[key] = Handle(value, library.frontend.destroy_handle)
    return _handles.by_device[key].value


class _LibraryErrors:
    """A context that raises the frontend's errors as those of this module, with the name and the
    subject of the call.

    It is a class because the traceback of an error that passes a generator keeps the generator's
    frames, and the objects that they use, alive until the garbage collector runs. The subject is
    converted to text only if there is an error, because that takes a tenth of the time of a call.
    """

    def __init__(self, call: str, library: Cudnn, detail: object) -> None:
        frontend = library.frontend
        self._caught = (frontend.cudnnGraphNotSupportedError, RuntimeError, ValueError)
        self._call = call
        self._detail = detail

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if not isinstance(error, self._caught):
            return
        # For every plan that cannot be built, the frontend says "not supported", whatever the
        # status is.
        found = re.search(r"CUDNN_STATUS_(\w+)", str(error))
        other = "INTERNAL_ERROR" if isinstance(error, RuntimeError) else "NOT_SUPPORTED"
        status = found[1] if found else other
        if status.startswith(("BAD_PARAM", "NOT_SUPPORTED", "SUBLIBRARY")):
            raise Unsupported(f"{self._call}: {error}: {self._detail}") from None
        category = next((each for each in STATUSES if status.startswith(each)), "INTERNAL_ERROR")
        kind = OutOfMemoryError if re.search("ALLOC(ATION)?_FAILED", status) else CudaError
        name = f"CUDNN_STATUS_{status}"
        raise kind(self._call, STATUSES[category], name, str(error), str(self._detail)) from None


@dataclass(frozen=True)
class Tensor:
    """A tensor in the library's terms.

    Attributes
    ----------
    shape : tuple of int
        (N, C, *spatial); for a filter (K, C / groups, *taps).
    strides : tuple of int
        In elements.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """A convolution to compute: each result is the sum of a window of the image times a filter.

    Attributes
    ----------
    kind : str
        FORWARD computes the result, BACKWARD_DATA the image, BACKWARD_FILTER the filter.
    dtype : str
    image, filter, result : Tensor
    stride, low, high, dilation : tuple of int
        For each spatial dimension the distance of windows, the padding before and after the
        elements, and the distance of a window's elements.
    bias : int, optional
        The distance of the elements of a vector that is added at each place of the result.
    activation : str, optional
        One of ACTIVATIONS, applied at the end.
    tf32 : bool
        Whether float32 may be rounded to TF32.
    """

    kind: str
    dtype: str
    image: Tensor
    filter: Tensor
    result: Tensor
    stride: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilation: tuple[int, ...]
    bias: int | None = None
    activation: str | None = None
    tf32: bool = False

    def __str__(self) -> str:
        """The shapes and types, channels first, for errors."""
        more = "" if self.bias is None else ", bias"
        more += f", {self.activation}" if self.activation else ""
        return (
            f"{self.dtype} convolution ({self.kind}), image {self.image.shape}, filter "
            f"{self.filter.shape}, result {self.result.shape}, stride {self.stride}, padding "
            f"{self.low} and {self.high}, dilation {self.dilation}{more}"
        )

    @property
    def tensors(self) -> dict[int, Tensor]:
        return {IMAGE: self.image, FILTER: self.filter, RESULT: self.result}


class CudnnCall:
    """An operation with the plans that the library offers for it, in the order of its heuristics,
    which put the fastest first.

    The constructor asks for the plans, :meth:`build` prepares one of them, and a call puts that
    plan on a stream. Plans whose results differ from run to run are left out. A subclass makes the
    library's graph for its kind of problem.

    Parameters
    ----------
    library : Cudnn
    ordinal, epoch : int
        The device and the epoch of its context, which is current.
    problem : Problem or AttentionProblem
    order : sequence of int
        The tensors in the order in which a call takes their addresses.
    most_workspace : int
        The most bytes of temporary memory.

    Attributes
    ----------
    problem, order
    count : int
        The number of plans.
    workspace : int
        Bytes of temporary memory of a call, once a plan is built.

    Raises
    ------
    Unsupported
        The library does not provide the operation.
    CudaError
        The library failed otherwise; the message has the shapes and types.
    """

    def __init__(
        self,
        library: Cudnn,
        ordinal: int,
        epoch: int,
        problem: Any,
        order: Sequence[int],
        *,
        most_workspace: int,
    ) -> None:
        self._library, self._device, self.order = library, (ordinal, epoch), tuple(order)
        self._most_workspace = most_workspace
        self.problem = problem
        self.workspace = 0
        self._index = -1
        handle = _handle(library, ordinal, epoch)
        with _LibraryErrors("cudnnBackendFinalize", library, problem):
            self._graph = self._make_graph(handle)
            self.count: int = self._graph.get_execution_plan_count()

    def _make_graph(self, handle: Any) -> Any:
        """The library's graph of the problem, with the plans that may be used."""
        raise NotImplementedError

    def _new_graph(self, handle: Any, name: str) -> tuple[Any, Any]:
        """An empty graph, and the library's name of the problem's element type."""
        cudnn = self._library.frontend
        dtype = getattr(cudnn.data_type, DATA_TYPES[self.problem.dtype])
        graph = cudnn.pygraph(
            name=name,
            io_data_type=dtype,
            intermediate_data_type=cudnn.data_type.FLOAT,
            compute_data_type=cudnn.data_type.FLOAT,
            handle=handle,
        )
        return graph, dtype

    def _plan(self, graph: Any, found: Any, target: Tensor, name: int, unwanted: Any = ()) -> None:
        """Make a tensor the graph's result, and ask for the plans without unwanted properties."""
        cudnn = self._library.frontend
        found.set_dim(list(target.shape)).set_stride(list(target.strides))
        dtype = getattr(cudnn.data_type, DATA_TYPES[self.problem.dtype])
        found.set_output(True).set_data_type(dtype).set_uid(name)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A])
        graph.deselect_numeric_notes([cudnn.numerical_note.NONDETERMINISTIC, *unwanted])

    def __del__(self, release: Any = release_when_idle) -> None:  # at exit the module is empty
        # When the graph is destroyed, the plan unloads the code that was compiled for it, and waits
        # for the device. So nothing that was captured from a call may outlive the graph
        # (graph/template keeps it), and the graph outlives running work.
        if hasattr(self, "_graph"):
            release(*self._device, self._graph)

    def build(self, index: int) -> str:
        """Prepare a plan, which calls use from now on; return its name.

        Raises
        ------
        Unsupported
            It does not run here, needs too much temporary memory or is unwanted.
        CudaError
            The library failed otherwise.
        """
        with _LibraryErrors("cudnnBackendFinalize", self._library, self.problem):
            self._graph.build_plan_at_index(index)
            workspace = int(self._graph.get_workspace_size_plan_at_index(index))
            name = str(self._graph.get_plan_name_at_index(index))
        if workspace > self._most_workspace:
            raise Unsupported(f"plan {name} needs {workspace:,} bytes: {self.problem}")
        self._index, self.workspace = index, workspace
        return name

    def build_first(self, wanted: str | None = None) -> None:
        """Prepare the first plan that runs here, or the one of this name.

        Raises
        ------
        Unsupported
            There is none.
        CudaError
            There is none, and the library has failed to build one.
        """
        failure: Exception = Unsupported(f"no plan of {self.count}: {self.problem}")
        try:
            for index in range(self.count):
                if wanted is not None and self._graph.get_plan_name_at_index(index) != wanted:
                    continue
                try:
                    self.build(index)
                    return
                except Unsupported:
                    pass
                except CudaError as error:
                    failure = error
            raise failure
        finally:
            del failure  # its traceback would keep the frame alive, and this object

    def prepare(self) -> None:
        """Make what a call on this thread needs, and what cannot be made during a capture."""
        _handle(self._library, *self._device)

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        """Put the operation on a stream.

        The addresses are those of the tensors, in the order of `order`, and of the workspace, if
        there is one.
        """
        handle = _handle(self._library, *self._device)
        pointers = dict(zip(self.order, addresses, strict=False))
        workspace = addresses[len(self.order)] if self.workspace else 0
        with _LibraryErrors("cudnnBackendExecute", self._library, self.problem):
            self._library.frontend.set_stream(handle=handle, stream=stream)
            self._graph.execute_plan_at_index(pointers, workspace, self._index, handle)


class Convolution(CudnnCall):
    """A convolution. Plans that round float32 are left out, unless that is allowed."""

    def _make_graph(self, handle: Any) -> Any:
        problem: Problem = self.problem
        graph, dtype = self._new_graph(handle, "convolution")
        computed = COMPUTED[problem.kind]
        image, filter_, result = (
            None
            if name == computed
            else graph.tensor(
                dim=list(tensor.shape), stride=list(tensor.strides), data_type=dtype, uid=name
            )
            for name, tensor in problem.tensors.items()
        )
        options = {
            "pre_padding": list(problem.low),
            "post_padding": list(problem.high),
            "stride": list(problem.stride),
            "dilation": list(problem.dilation),
        }
        if problem.kind == FORWARD:
            found = graph.conv_fprop(image=image, weight=filter_, **options)
        elif problem.kind == BACKWARD_DATA:
            found = graph.conv_dgrad(loss=result, filter=filter_, **options)
        else:
            found = graph.conv_wgrad(image=image, loss=result, **options)
        target = problem.tensors[computed]
        if problem.bias is not None:
            channels, ndim = target.shape[1], len(target.shape)
            steps = [channels * problem.bias, problem.bias] + [channels * problem.bias] * (ndim - 2)
            bias = graph.tensor(
                dim=[1, channels] + [1] * (ndim - 2), stride=steps, data_type=dtype, uid=BIAS
            )
            found = graph.bias(found, bias)
        if problem.activation is not None:
            found = getattr(graph, ACTIVATIONS[problem.activation])(found)
        note = self._library.frontend.numerical_note
        unwanted = [note.DOWN_CONVERT_INPUTS]
        if problem.dtype == "float32" and not problem.tf32:
            unwanted.append(note.TENSOR_CORE)
        self._plan(graph, found, target, computed, unwanted)
        return graph


# The numbers that name attention's tensors to cuDNN, in the order of a call's addresses.
ATTENDED, QUERIES, KEYS, VALUES, MASK = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class AttentionProblem:
    """Attention to compute: ``softmax(scale * queries @ keys.mT + mask) @ values``.

    Attributes
    ----------
    dtype : str
    result, queries, keys, values : Tensor
        (batches, heads, rows, features); the heads of queries are a multiple of the other heads.
    scale : float
        Above 0.
    causal : bool
        Whether the last row of queries sees all keys, and each row before it one key less.
    mask : Tensor, optional
        (batches or 1, heads or 1, rows, keys), of the queries' type. Not if it is causal.
    """

    dtype: str
    result: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor
    scale: float
    causal: bool
    mask: Tensor | None = None

    def __str__(self) -> str:
        """The shapes and types, for errors."""
        kind = "causal attention" if self.causal else "attention"
        mask = f", mask {self.mask.shape}" if self.mask else ""
        return (
            f"{self.dtype} {kind}, queries {self.queries.shape}, keys and values "
            f"{self.keys.shape}{mask}"
        )


class Attention(CudnnCall):
    """Attention.

    Parameters
    ----------
    library : Cudnn
    ordinal, epoch : int
        The device and the epoch of its context, which is current.
    problem : AttentionProblem
    most_workspace : int
        The most bytes of temporary memory.

    Raises
    ------
    Unsupported
        The library does not provide the attention.
    CudaError
        The library failed otherwise; the message has the shapes and types.
    """

    def __init__(
        self,
        library: Cudnn,
        ordinal: int,
        epoch: int,
        problem: AttentionProblem,
        *,
        most_workspace: int,
    ) -> None:
        order = (ATTENDED, QUERIES, KEYS, VALUES) + (MASK,) * (problem.mask is not None)
        super().__init__(library, ordinal, epoch, problem, order, most_workspace=most_workspace)

    def _make_graph(self, handle: Any) -> Any:
        problem: AttentionProblem = self.problem
        graph, dtype = self._new_graph(handle, "attention")
        named = {QUERIES: problem.queries, KEYS: problem.keys, VALUES: problem.values}
        if problem.mask is not None:
            named[MASK] = problem.mask
        queries, keys, values, *masks = (
            graph.tensor(dim=list(each.shape), stride=list(each.strides), data_type=dtype, uid=name)
            for name, each in named.items()
        )
        band = {"bias": masks[0]} if masks else {}
        if problem.causal:
            # With as many rows as keys both alignments give the same result, and more plans
            # support the upper left one.
            square = problem.queries.shape[2] == problem.keys.shape[2]
            alignment = self._library.frontend.diagonal_alignment
            band = {
                "diagonal_alignment": alignment.TOP_LEFT if square else alignment.BOTTOM_RIGHT,
                "diagonal_band_right_bound": 0,
            }
        found, _ = graph.sdpa(
            q=queries, k=keys, v=values, attn_scale=problem.scale, generate_stats=False, **band
        )
        self._plan(graph, found, problem.result, ATTENDED)
        return graph
