"""``RawKernel`` and ``RawModule``: kernels and modules of CUDA C++, PTX or cubins."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from cyrt.cupy_compat.device_code import CUCOMPLEX, HEADERS
from cyrt.driver.errors import CudaError
from cyrt.kernels import Kernel, Module
from cyrt.kernels.encoder import current_encoder
from cyrt.ndarray import Array
from cyrt.runtime.device import Device
from cyrt.runtime.memory import Buffer
from cyrt.runtime.stream import stream as as_stream

_BACKENDS = ("nvrtc", "nvcc")
_ATTRIBUTES = (
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
)


class RawModule:
    """A module with the kernels and variables of CUDA C++ source, or of a file of device code.

    It is compiled or loaded at its first use. The arguments are those of CuPy's ``cupy.RawModule``.

    Parameters
    ----------
    code : str, optional
        CUDA C++ source; it may include ``<cupy/complex.cuh>`` and ``<cupy/carray.cuh>``.
    path : str or path, optional
        A file of PTX, a cubin or a fatbin; either `code` or `path` is given.
    options : sequence of str
        Options of NVRTC.
    backend : str
        ``"nvrtc"`` or ``"nvcc"``. NVRTC compiles in both cases.
    translate_cucomplex : bool
        Whether the types of ``cuComplex.h`` have operators.
    enable_cooperative_groups : bool
        Whether kernels are launched so that all their blocks run at once.
    name_expressions : sequence of str, optional
        Instances of templates, such as ``"f<float>"``.
    jitify : bool, optional
        It has no effect: parts of the C++ standard library exist in any case.

    Raises
    ------
    TypeError
        Neither `code` nor `path` is given, or both are.
    ValueError
        The backend has another value, or `name_expressions` are given for a file or ``"nvcc"``.
    """

    __module__ = "cyrt.cupy_compat"

    def __init__(
        self,
        *,
        code: str | None = None,
        path: Any = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool | None = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("RawModule: expected exactly one of code= and path=")
        if backend not in _BACKENDS:
            raise ValueError(f"backend: expected 'nvrtc' or 'nvcc', got {backend!r}")
        if name_expressions is not None:
            if code is None:
                raise ValueError("name_expressions: for source only, and path= is given")
            if backend != "nvrtc":
                raise ValueError(f"name_expressions: for the backend 'nvrtc', got {backend!r}")
        _warn_of_jitify(jitify)
        self.code = code
        self.file_path = path
        self.options = tuple(options) if code is not None else ()
        self.backend = backend
        self.translate_cucomplex = translate_cucomplex
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        self.jitify = jitify
        self._module: Module | None = None

    @property
    def module(self) -> Module:
        """The module as a :class:`cyrt.Module`; it is compiled or loaded first if necessary."""
        if self._module is None:
            if self.code is None:
                try:
                    self._module = Module(Path(self.file_path), strided=True)
                except FileNotFoundError as error:
                    raise CudaError(
                        "cuModuleLoad", 301, "CUDA_ERROR_FILE_NOT_FOUND", str(error)
                    ) from None
            else:
                headers = dict(HEADERS)
                if self.translate_cucomplex:
                    headers["cuComplex.h"] = CUCOMPLEX
                self._module = Module(
                    self.code,
                    self.name_expressions or (),
                    options=self.options,
                    headers=headers,
                    strided=True,
                )
        return self._module

    def compile(self, log_stream: Any = None) -> None:
        """Compile or load the module now.

        Parameters
        ----------
        log_stream : file, optional
            The file to which the compiler's output is written.
        """
        image = self.module._image(Device.current().index)
        if log_stream is not None and image is not None:
            log_stream.write(image.log)

    def get_function(self, name: str) -> RawKernel:
        """Return a kernel.

        Parameters
        ----------
        name : str
            The kernel's name, or one of `name_expressions`.

        Raises
        ------
        CudaError
            The module has no such kernel, or there is no such file.
        CompileError
            The source does not compile.
        """
        kernel = RawKernel._of(self, name)
        kernel.compile()
        return kernel

    def get_global(self, name: str) -> Buffer:
        """Return a ``__device__`` or ``__constant__`` variable, as a Buffer.

        Parameters
        ----------
        name : str
            The variable's name.

        Raises
        ------
        CudaError
            The module has no such variable.
        """
        try:
            return self.module.get_global(name)
        except KeyError as error:
            _raise_not_found("cuModuleGetGlobal", error)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (
            {
                "code": self.code,
                "path": self.file_path,
                "options": self.options,
                "backend": self.backend,
                "translate_cucomplex": self.translate_cucomplex,
                "enable_cooperative_groups": self.enable_cooperative_groups,
                "name_expressions": self.name_expressions,
            },
        )

    def __repr__(self) -> str:
        return f"<RawModule of {'source' if self.file_path is None else self.file_path}>"


class RawKernel:
    """A kernel of CUDA C++ source, launched as ``kernel(grid, block, args)``.

    It is compiled at its first use. The arguments are those of CuPy's ``cupy.RawKernel``.

    Parameters
    ----------
    code : str
        CUDA C++ source; it may include ``<cupy/complex.cuh>`` and ``<cupy/carray.cuh>``.
    name : str
        The kernel's name.
    options : sequence of str
        Options of NVRTC.
    backend, translate_cucomplex, enable_cooperative_groups, jitify
        As for :class:`RawModule`.

    Raises
    ------
    ValueError
        The backend is neither ``"nvrtc"`` nor ``"nvcc"``.
    """

    __module__ = "cyrt.cupy_compat"

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ) -> None:
        if not isinstance(code, str):
            raise TypeError(f"RawKernel: code: expected a str, got {type(code).__name__}")
        _warn_of_jitify(jitify)
        self._raw = RawModule(
            code=code,
            options=options,
            backend=backend,
            translate_cucomplex=translate_cucomplex,
            enable_cooperative_groups=enable_cooperative_groups,
        )
        self.name = self.__name__ = name
        self._dynamic: int | None = None
        self._carveout: int | None = None

    @classmethod
    def _of(cls, module: RawModule, name: str) -> RawKernel:
        self = cls.__new__(cls)
        self._raw = module
        self.name = self.__name__ = name
        self._dynamic = self._carveout = None
        return self

    @property
    def kernel(self) -> Kernel:
        """The kernel as a :class:`cyrt.Kernel`."""
        try:
            return self._raw.module[self.name]
        except KeyError as error:
            _raise_not_found("cuModuleGetFunction", error)

    def __call__(
        self, grid: Any, block: Any, args: Sequence[Any], *, shared_mem: int = 0, stream: Any = None
    ) -> None:
        """Launch the kernel.

        Parameters
        ----------
        grid, block : tuple of int
            The numbers of blocks, and of threads in a block, x first. A cooperative grid of one
            dimension is reduced, with a warning, to the blocks that can run at the same time.
        args : tuple or list
            The arguments. For an array the kernel gets the address of its first element, whatever
            its type and strides are; a number is converted to the type that the kernel declares.
        shared_mem : int
            Bytes of dynamic shared memory of a block.
        stream : Stream, optional
            Default: the current one.

        Raises
        ------
        TypeError, ValueError
            An argument does not fit its parameter, or the geometry exceeds the device's limits.
        """
        if stream is not None:
            with as_stream(stream):
                self(grid, block, args, shared_mem=shared_mem)
            return
        given = [_argument(each) for each in args]
        if self._raw.enable_cooperative_groups:
            kernel = self.kernel
            grid = _cooperative_grid(kernel, grid, block, shared_mem)
            current_encoder().add_kernel(
                kernel, grid, block, given, smem=shared_mem, cooperative=True
            )
        else:
            self.kernel[grid, block, shared_mem](*given)

    def compile(self, log_stream: Any = None) -> None:
        """Compile and load the kernel now.

        Parameters
        ----------
        log_stream : file, optional
            The file to which the compiler's output is written.
        """
        self._raw.compile(log_stream)
        self.kernel.registers  # noqa: B018 - loads it, or raises

    @property
    def enable_cooperative_groups(self) -> bool:
        """Whether all blocks of a launch run at the same time."""
        return self._raw.enable_cooperative_groups

    @property
    def code(self) -> str | None:
        """The CUDA C++ source."""
        return self._raw.code

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the compiler."""
        return self._raw.options

    @property
    def backend(self) -> str:
        """The argument `backend`."""
        return self._raw.backend

    @property
    def attributes(self) -> dict[str, int]:
        """The compiled kernel's attributes on the current device, by CuPy's names."""
        return {name: getattr(self, name) for name in _ATTRIBUTES}

    @property
    def max_threads_per_block(self) -> int:
        """The largest number of threads of a block."""
        return self.kernel.max_threads

    @property
    def shared_size_bytes(self) -> int:
        """The bytes of static shared memory of a block."""
        return self.kernel.shared_bytes

    @property
    def local_size_bytes(self) -> int:
        """The bytes of local memory of a thread."""
        return self.kernel.local_bytes

    @property
    def num_regs(self) -> int:
        """The number of registers of a thread."""
        return self.kernel.registers

    @property
    def const_size_bytes(self) -> int:
        """The bytes of constant memory."""
        return self._attribute("const_size_bytes")

    @property
    def ptx_version(self) -> int:
        """The virtual architecture of its PTX: 10 times the major number, plus the minor one."""
        return self._attribute("ptx_version")

    @property
    def binary_version(self) -> int:
        """The architecture of its code: 10 times the major number, plus the minor one."""
        return self._attribute("binary_version")

    @property
    def cache_mode_ca(self) -> int:
        """Whether it was compiled with ``-Xptxas --dlcm=ca``."""
        return self._attribute("cache_mode_ca")

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The maximum bytes of dynamic shared memory; a launch that needs more increases it."""
        if self._dynamic is not None:
            return self._dynamic
        return self._attribute("max_dynamic_shared_size_bytes")

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes: int) -> None:
        self._dynamic = int(nbytes)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """The percentage of the cache that is shared memory; a value that is set replaces the
        driver's choice."""
        if self._carveout is not None:
            return self._carveout
        return self._attribute("preferred_shared_memory_carveout")

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, percentage: int) -> None:
        self._carveout = int(percentage)

    def _attribute(self, name: str) -> int:
        module = self._raw.module
        function = module._function(module._symbol(self.name), Device.current().index)
        return function.attributes()[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return RawKernel._of, (self._raw, self.name)

    def __repr__(self) -> str:
        return f"<RawKernel {self.name}>"


def _warn_of_jitify(jitify: bool | None) -> None:
    """Warn the caller's caller; the words begin as CuPy's do, so that its users' filters match."""
    if jitify is not None:
        text = (
            "jitify=True is deprecated: it has no effect"
            if jitify
            else "The jitify argument is deprecated: it has no effect. Avoid passing jitify=False"
        )
        warnings.warn(text, DeprecationWarning, stacklevel=3)


def _restore(how: dict[str, Any]) -> RawModule:
    return RawModule(**how)


def _cooperative_grid(kernel: Kernel, grid: Any, block: Any, smem: int) -> Any:
    """Return the grid, or the largest one whose blocks all run at once if it has one dimension."""
    sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    threads = prod(block) if isinstance(block, (tuple, list)) else block
    if prod(sizes[1:]) != 1:
        return grid
    most = kernel.blocks_per_multiprocessor(threads, smem) * Device.current().multiprocessors
    if sizes[0] <= most:
        return grid
    warnings.warn(
        f"The grid size will be reduced from {sizes[0]} to {most}: {kernel.name} is cooperative, "
        f"and no more blocks of {threads} threads run at the same time",
        stacklevel=3,
    )
    return most


def _raise_not_found(call: str, error: KeyError) -> NoReturn:
    text = f"named symbol not found: {error.args[0]}"
    raise CudaError(call, 500, "CUDA_ERROR_NOT_FOUND", text) from None


def _argument(value: Any) -> Any:
    """Return what is passed to the kernel. A contiguous array is passed as its Buffer, whose
    element type is not checked."""
    if isinstance(value, Array):
        return value.buffer if value.flags.c_contiguous else value
    if isinstance(value, np.complexfloating):
        return value.tobytes()
    if isinstance(value, complex):
        return np.complex128(value).tobytes()
    return value
