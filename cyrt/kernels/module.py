"""Modules: device code from source, a file or bytes, and the kernels in it."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cyrt import jit
from cyrt.driver.errors import CompileError
from cyrt.driver.frames import outside_stacklevel
from cyrt.kernels.kernel import Kernel
from cyrt.other_names import CLASSES, refuse_attribute
from cyrt.runtime import image as images
from cyrt.runtime.device import Device
from cyrt.runtime.memory import Buffer
from cyrt.runtime.module import LoadedFunction, LoadedModule, load_uninterrupted, loading

if TYPE_CHECKING:
    from cyrt.jit.compiler import Image
    from cyrt.jit.signature import Signature

_SUFFIXES = (".cu", ".cuh", ".ptx", ".cubin", ".fatbin")


def _read(path: Path) -> str | bytes:
    """Read a file's code; its kind follows from its content."""
    content = path.read_bytes()
    if images.kind(content):
        return content
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is neither PTX, cubin nor fatbin, and no source in UTF-8 ({error})"
        ) from None


def _warn(log: str) -> None:
    """Warn of the compiler's messages, at the line outside of cyrt that made the module."""
    text = f"the compiler warns of the kernels:\n{log}"
    warnings.warn(text, RuntimeWarning, stacklevel=outside_stacklevel())


def _find_symbols(name: str, full: Iterable[tuple[str, str]]) -> list[str]:
    """The symbols of a C++ name: those with that full name, otherwise those that end in it.

    Spaces do not count: ``f<float,1>`` is ``f<float, 1>``.
    """
    wanted = name.replace(" ", "")
    pairs = [(symbol, text.replace(" ", "")) for symbol, text in full]
    found = [s for s, f in pairs if f == wanted] or [
        s for s, f in pairs if f.endswith(f"::{wanted}")
    ]
    return [*dict.fromkeys(found)]


def _by_size(name: str, sizes: Sequence[tuple[int, int]]) -> Signature:
    """The parameters of a cubin without mangled names: 8 bytes may be a pointer that is written."""
    return jit.signature.Signature(
        name,
        tuple(
            jit.signature.Parameter("pointer or 64-bit integer", "word64", 8, 8, True)
            if size == 8
            else jit.signature.Parameter(f"{size} bytes", "unknown", size, 1, False)
            for _, size in sizes
        ),
    )


class Module:
    """Device code, and the kernels in it: ``module["axpy<float>"]``.

    Source is compiled for a device at its first use on that device. Kernels that are not
    templates are always available, by their C++ names or their symbols. Instances of templates must
    be listed in ``names``.

    Parameters
    ----------
    code : str, bytes or path
        CUDA C++ source; or PTX, or the bytes of a cubin or a fatbin; or a `pathlib.Path` (any
        `os.PathLike`) to a file of one of these, recognised by its content. ``#include`` searches
        the folder of a source file.
    names : sequence of str
        Name expressions: ``"axpy<float>"``, ``"space::kernel"``, and ``"&table<float>"`` for a
        variable.
    signatures : mapping, optional
        C++ declarations by name, for kernels whose parameters cannot be read from the code.
    options : sequence of str
        Options of NVRTC, such as ``"-use_fast_math"``. `options`, `headers` and `define` are for
        source only.
    headers : mapping of str to str, optional
        Additional headers: the name in ``#include`` and the text.
    define : mapping of str to object, optional
        Macros: ``{"BLOCK": 128, "FAST": True, "T": "float"}``. None and True define 1, as
        ``-DNAME`` does; ``""`` defines an empty one.
    strided : bool
        Whether the kernels accept arrays that are not C-contiguous, as :class:`Kernel` describes.

    Raises
    ------
    CompileError
        The source does not compile, a name matches nothing, or the driver refuses the code.
    OSError
        The file cannot be read.
    KeyError
        `signatures` names a kernel that the code does not have.
    ValueError
        `options`, `headers` or `define` with code that is already compiled.

    Examples
    --------
    >>> import cyrt
    >>> module = cyrt.Module(
    ...     r'''template <typename T> __global__ void fill(T* x, T value) {
    ...         x[threadIdx.x] = value;
    ...     }''',
    ...     ["fill<int>", "fill<float>"],
    ... )
    >>> x = cyrt.zeros(4)
    >>> module["fill<float>"][1, 4](x, 2.5)
    >>> x
    Array([2.5, 2.5, 2.5, 2.5], dtype=float32)
    """

    __module__ = "cyrt"

    def __init__(
        self,
        code: str | bytes | os.PathLike[str],
        names: Sequence[str] = (),
        *,
        signatures: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        define: Mapping[str, object] | None = None,
        strided: bool = False,
    ) -> None:
        for what, given in (("names", names), ("options", options)):
            if isinstance(given, str):
                raise TypeError(f"{what}: expected a sequence of str, got the str {given!r}")
        for what, texts in (("headers", headers), ("define", define)):
            if texts is not None and not isinstance(texts, Mapping):
                raise TypeError(f"{what}: expected a mapping by name, got {type(texts).__name__}")
        self._how: dict[str, Any] = {
            "options": tuple(options),
            "headers": dict(headers or {}),
            "define": dict(define or {}),
        }
        given = [f"{what}=" for what, value in self._how.items() if value]
        if isinstance(code, os.PathLike):
            path = Path(code)
            code = _read(path)
            if isinstance(code, str):
                # NVRTC searches the file's folder by itself; code that reads the options has to
                # know it.
                self._how["options"] += (f"-I{path.absolute().parent}",)
                self._how["filename"] = os.fspath(path)
        if not isinstance(code, (str, bytes, bytearray, memoryview)):
            raise TypeError(
                "code: expected CUDA C++ source as a str, PTX, cubin or fatbin as bytes, or a "
                f"pathlib.Path to a file of one of these, got {type(code).__name__}"
            )
        if isinstance(code, str) and code.endswith(_SUFFIXES) and "\n" not in code:
            raise ValueError(
                f"code: expected CUDA C++ source, got {code!r}; a file is given as a pathlib.Path"
            )
        if isinstance(code, str) and images.kind(code.encode()) == "ptx":
            code = code.encode()
        self._code = code if isinstance(code, str) else bytes(code)
        if given and isinstance(self._code, bytes):
            raise ValueError(
                f"{', '.join(given)}: for source only, and the code is "
                f"{images.kind(self._code) or 'bytes'}, compiled already"
            )
        self._names = tuple(names)
        self._strided = bool(strided)
        self._declared = {
            name: jit.signature.from_declaration(text) for name, text in (signatures or {}).items()
        }
        self._images: dict[str, Image] = {}
        self._loaded: dict[int, LoadedModule] = {}
        self._kernels: dict[str, Kernel] = {}
        self._load(Device.current().index)
        for name, declared in self._declared.items():
            symbol = self._symbol(name)
            self._function(symbol, Device.current().index)
            if declared.name.partition("<")[0].rpartition("::")[2] not in symbol:
                raise ValueError(f"{name}: signature: expected its declaration, got {declared}")

    @property
    def names(self) -> list[str]:
        """The names of the kernels: those that were listed, otherwise C++ names or symbols."""
        listed = self._listed()
        full = {
            symbol: jit.mangling.readable_name(symbol)
            for symbol in self._symbols()
            if symbol not in listed.values()
        }
        names = Counter((*listed, *full.values()))
        return [*listed, *(s if names[name] > 1 else name for s, name in full.items())]

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            if not isinstance(name, str):
                raise TypeError(
                    "a Module is indexed by a kernel's name, one of module.names, not by "
                    f"{type(name).__name__}"
                )
            self._kernels.setdefault(name, Kernel._of(self, name))
        return self._kernels[name]

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self._symbol(name) in self._symbols()
        except KeyError:  # several kernels have this name
            return False

    def get_global(self, name: str) -> Buffer:
        """Return a ``__device__`` or ``__constant__`` variable of the current device.

        Parameters
        ----------
        name : str
            The variable's name, with or without its namespaces, or its (mangled) symbol.

        Returns
        -------
        Buffer
            A view of the variable, which keeps the code loaded. Copies, fills and kernels that
            use it are ordered with the module's kernels.

        Raises
        ------
        KeyError
            The module has no variable of that name, or several.

        Examples
        --------
        >>> import cyrt
        >>> code = '__device__ int runs; extern "C" __global__ void bump() { runs += 1; }'
        >>> module = cyrt.Module(code)
        >>> module["bump"][1, 1]()
        >>> cyrt.asarray(module.get_global("runs"), dtype="int32")
        Array([1], dtype=int32)
        """
        loaded = self._load(Device.current().index)
        image = self._image(loaded.ordinal)
        symbol = name if image is None else image.lowered.get(f"&{name}", name)
        full = {s: jit.signature.variable_name(s) for s in loaded.variables or ()}
        if symbol not in full:
            found = _find_symbols(name, full.items())
            if len(found) > 1:
                raise KeyError(
                    f"the module has several variables {name!r}: "
                    f"{', '.join(full[s] for s in found)}"
                )
            symbol = found[0] if found else symbol
        try:
            return loaded.variable(symbol)
        except KeyError:
            known = (
                "a fatbin's go by their symbols"
                if loaded.variables is None
                else f"it has {', '.join(full.values()) or 'none'}"
            )
            raise KeyError(f"the module has no variable {name!r}; {known}") from None

    @property
    def _ptx(self) -> str | None:
        code = self._code
        return code.decode() if isinstance(code, bytes) and images.kind(code) == "ptx" else None

    @property
    def _digest(self) -> str:
        """The identity of the code: a hash of the constructor's arguments."""
        return hashlib.sha256(repr((self._code, self._names, self._how)).encode()).hexdigest()

    def _image(self, ordinal: int) -> Image | None:
        """The compiled source for a device; None for code that was passed as bytes."""
        if isinstance(self._code, bytes):
            return None
        device = Device(ordinal)
        arch = jit.compiler.architecture(device.compute_capability, device.emulated)
        if arch not in self._images:
            self._images[arch] = self._compile(self._code, arch)
            if self._images[arch].log:
                _warn(self._images[arch].log)
        return self._images[arch]

    def _compile(self, code: str, arch: str) -> Image:
        return jit.compiler.compile(code, self._names, arch=arch, **self._how)

    def _symbols(self) -> list[str]:
        """The kernels' symbols."""
        image = self._image(Device.current().index)
        if image is not None:
            return [*dict.fromkeys(image.lowered[name] for name in image.signatures)]
        if (ptx := self._ptx) is not None:
            return jit.signature.entries(ptx)
        return self._load(Device.current().index).function_names() or []

    def _listed(self) -> dict[str, str]:
        """The symbols of the kernels that ``names`` lists for source, by these names."""
        image = self._image(Device.current().index)
        if image is None:
            return {}
        return {name: image.lowered[name] for name in self._names if name in image.signatures}

    def _load(self, ordinal: int) -> LoadedModule:
        """The code on a device, loaded once: each copy would have separate variables.

        After a reset of the device it is loaded again, unless it has variables: the values that the
        program wrote into them are gone.
        """
        found = self._loaded.get(ordinal)
        if found is not None and found.is_current:
            return found
        if found is not None and found.variables != {}:
            names = ", ".join(map(jit.signature.variable_name, found.variables or ()))
            raise RuntimeError(
                f"the module was loaded into a context of device {ordinal} that was reset, and the "
                f"values of its variables{names and f' ({names})'} are gone; make it again"
            )
        device = Device(ordinal)
        image = self._image(ordinal)  # several threads may compile it at once
        code: Any = self._code if image is None else image.code
        with loading:
            if self._loaded.get(ordinal) is found:
                if found is not None:
                    del self._loaded[ordinal]
                # A signal handler that ran during the load may have stored one first.
                load_uninterrupted(
                    (self, ordinal),
                    lambda: self._loaded.setdefault(ordinal, self._new_module(code, device)),
                )
        return self._loaded[ordinal]

    @staticmethod
    def _new_module(code: Any, device: Device) -> LoadedModule:
        try:
            return LoadedModule(code, device)
        except CompileError as error:
            why = images.misfit(code, device.compute_capability, device.emulated)
            if not why:
                raise
            raise CompileError(
                error.call, error.code, error.name, f"{error.text}: {why}", error.log
            ) from None

    def _function(self, symbol: str, ordinal: int) -> LoadedFunction:
        try:
            return self._load(ordinal).function(symbol)
        except KeyError:
            how = (
                # No double quotes: a KeyError's text would show all others with backslashes.
                ". A template's instance is named when the module is made: "
                f"Module(code, names=[{symbol!r}])"
                if isinstance(self._code, str) and symbol not in self._names
                else ""
            )
            known = ", ".join(self.names) or "none"
            raise KeyError(f"the module has no kernel {symbol!r}; it has {known}{how}") from None

    def _symbol(self, name: str) -> str:
        """The symbol of a kernel's name; the name itself if no kernel has it."""
        listed, symbols = self._listed(), self._symbols()
        if name in listed:
            return listed[name]
        if name in symbols:
            return name
        full = [(symbol, jit.mangling.readable_name(symbol)) for symbol in symbols]
        full += [(symbol, text) for text, symbol in listed.items()]
        found = _find_symbols(name, full)
        if len(found) > 1:
            raise KeyError(f"the module has several kernels {name!r}: {', '.join(found)}")
        return found[0] if found else name

    def _signature(self, name: str, function: LoadedFunction) -> Signature:
        """The parameters, from the declaration, the compiler, the symbol, or PTX's sizes."""
        sizes = function.parameters()
        compiled = self._compiled_signature(name, function.name)
        found = self._declared.get(name)
        if found is None and isinstance(self._code, bytes):
            found = jit.signature.from_mangled(function.name)
        if found is None:
            found = compiled
        elif compiled is not None:
            found = found.refined(compiled)
        if found is None and sizes is not None:
            found = _by_size(function.name, sizes)
        if found is None:
            raise TypeError(
                f"{name}: the parameters cannot be read from the code; give "
                f'signature="void {name}(...)", its C++ declaration'
            )
        for parameter in found.parameters:
            if parameter.code == "reference":
                raise TypeError(
                    f"{name}: {parameter}: a kernel takes no references; pass a value or a pointer"
                )
        return found if sizes is None else found.completed(sizes)

    def _may_hold_pointers(self) -> bool:
        """Whether a variable of the module may hold a pointer."""
        image = self._image(Device.current().index)
        code = self._code if image is None else image.code
        return isinstance(code, bytes) and images.may_hold_pointers(code)

    def _check_programmatic(self, name: str) -> None:
        """Raise if the kernel does not execute ``griddepcontrol.wait``."""
        symbol = self._symbol(name)
        if isinstance(self._code, str):
            image = self._compile(self._code, "compute_90")
            text, symbol = image.code.decode(), image.lowered.get(name, symbol)
        elif (ptx := self._ptx) is not None:
            text = ptx
        else:
            raise ValueError(
                f"{name}: pdl=True: expected source or PTX, whose instructions can be read"
            )
        _, _, body = text.partition(f".entry {symbol}")
        if "griddepcontrol.wait" not in body.partition(".entry ")[0]:
            raise ValueError(
                f"{name}: pdl=True, and the kernel never executes griddepcontrol.wait "
                "(cudaGridDependencySynchronize()) before it touches global memory"
            )

    def _compiled_signature(self, name: str, symbol: str) -> Signature | None:
        """The parameters that the compiler or the PTX declares; a cubin declares none."""
        image = self._image(Device.current().index)
        if image is not None:
            return image.signatures.get(name) or image.signatures.get(symbol)
        if (ptx := self._ptx) is not None:
            return jit.signature.from_ptx(ptx, symbol)
        return None

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Module is code loaded in this process and is not pickled; make it from "
            "its source there"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("_how", "_code", "_names", "_declared", "_images", "_loaded", "_kernels"):
            raise RuntimeError("the Module was not initialised")
        if name in CLASSES["Module"]:
            refuse_attribute(type(self), name, CLASSES["Module"][name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        if "_kernels" not in self.__dict__:
            return "<cyrt.Module, not initialised>"
        return f"<cyrt.Module with {', '.join(self.names) or 'no kernels'}>"
