"""Modules: device code from source or bytes, and the kernels in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cyrt import jit
from cyrt.kernels.kernel import Kernel
from cyrt.runtime.device import Device
from cyrt.runtime.memory import Buffer, pointer
from cyrt.runtime.module import LoadedFunction, LoadedModule

if TYPE_CHECKING:
    from cyrt.jit.compiler import Image
    from cyrt.jit.signature import Signature

# PTX given as a str: only comments may come before the directive that no C++ begins with.
_PTX_TEXT = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*\.version\b", re.DOTALL)


def _by_size(name: str, sizes: Sequence[tuple[int, int]]) -> Signature:
    """All that a cubin without mangled names tells: 8 bytes may be a pointer that is written."""
    return jit.signature.Signature(name, tuple(
        jit.signature.Parameter("pointer or 64-bit integer", "word64", 8, 8, True) if size == 8
        else jit.signature.Parameter(f"{size} bytes", "bytes", size, 1, False)
        for _, size in sizes
    ))


class Module:
    """Device code, and the kernels in it: ``module["axpy<float>"]``.

    Source is compiled for the device it is used on, at first use there. ``extern "C"`` kernels
    are always there; others, and instances of templates, as ``names`` asks for them.

    Parameters
    ----------
    code : str or bytes
        CUDA C++ source; or PTX, or the bytes of a cubin or a fatbin.
    names : sequence of str
        Name expressions: ``"axpy<float>"``, ``"space::kernel"``.
    signatures : mapping, optional
        C++ declarations by name, for kernels whose parameters cannot be read from the code.

    Raises
    ------
    CompileError
        The source does not compile, a name matches nothing, or the driver refuses the code.
    """

    __module__ = "cyrt"

    def __init__(
        self,
        code: str | bytes,
        names: Sequence[str] = (),
        *,
        signatures: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(names, str):
            raise TypeError(f"names: expected a sequence of names, got the str {names!r}")
        if not isinstance(code, (str, bytes, bytearray, memoryview)):
            raise TypeError(
                "code: expected CUDA C++ source as a str, or PTX, cubin or fatbin as bytes, got "
                f"{type(code).__name__}"
            )
        if isinstance(code, str) and _PTX_TEXT.match(code):
            code = code.encode()
        self._code = code if isinstance(code, str) else bytes(code)
        self._names = tuple(names)
        self._declared = {
            name: jit.signature.from_declaration(text) for name, text in (signatures or {}).items()
        }
        self._images: dict[str, Image] = {}
        self._loaded: dict[int, LoadedModule] = {}
        self._kernels: dict[str, Kernel] = {}
        self._load(Device.current().index)

    @property
    def names(self) -> list[str]:
        """The kernels that can be asked for."""
        image = self._image(Device.current().index)
        if image is not None:
            symbols = set(image.lowered.values())
            return [*image.lowered, *(s for s in image.signatures if s not in symbols
                                      and s not in image.lowered)]
        if self._is_ptx:
            return jit.signature.entries(self._code.decode())
        return self._load(Device.current().index).function_names() or []

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = Kernel._of(self, name)
        return self._kernels[name]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def get_global(self, name: str) -> Buffer:
        """A ``__device__`` or ``__constant__`` variable of the current device, as a Buffer.

        Raises
        ------
        KeyError
            The module has none of that (mangled) name.
        """
        loaded = self._load(Device.current().index)
        address, nbytes = loaded.variable(name)
        return pointer(address, nbytes, loaded.ordinal, owner=loaded)

    @property
    def _is_ptx(self) -> bool:
        return isinstance(self._code, bytes) and b".version" in self._code[:65536] \
            and b"\0" not in self._code[:-1]

    def _image(self, ordinal: int) -> Image | None:
        """The compiled source for a device; None for code that came as bytes."""
        if isinstance(self._code, bytes):
            return None
        device = Device(ordinal)
        arch = jit.compiler.architecture(device.compute_capability, device.emulated)
        if arch not in self._images:
            self._images[arch] = jit.compiler.compile(self._code, self._names, arch=arch)
        return self._images[arch]

    def _load(self, ordinal: int) -> LoadedModule:
        if ordinal not in self._loaded:
            image = self._image(ordinal)
            code: Any = self._code if image is None else image.code
            self._loaded[ordinal] = LoadedModule(code, ordinal)
        return self._loaded[ordinal]

    def _function(self, symbol: str, ordinal: int) -> LoadedFunction:
        try:
            return self._load(ordinal).function(symbol)
        except KeyError:
            raise KeyError(
                f"the module has no kernel {symbol!r}; it has {', '.join(self.names) or 'none'}"
            ) from None

    def _symbol(self, name: str) -> str:
        """The mangled name; the name itself where the code does not tell."""
        image = self._image(Device.current().index)
        if image is not None:
            return image.lowered.get(name, name)
        if self._is_ptx:
            entries = jit.signature.entries(self._code.decode())
            if name not in entries:
                plain = [e for e in entries
                         if (s := jit.signature.from_mangled(e)) is not None and s.name == name]
                if len(plain) == 1:
                    return plain[0]
        return name

    def _signature(self, name: str, function: LoadedFunction) -> Signature:
        """The parameters: declared, told by the compiler, by the symbol, or by PTX's sizes."""
        sizes = function.parameters()
        found = self._declared.get(name) or self._told(name, function.name)
        if found is None:
            found = jit.signature.from_mangled(function.name)
        if found is None and self._is_ptx:
            found = jit.signature.from_ptx(self._code.decode(), function.name)
        if found is None and sizes is not None:
            found = _by_size(function.name, sizes)
        if found is None:
            raise TypeError(
                f"{name}: the parameters cannot be read from the code; give "
                f"signature=\"void {name}(...)\", its C++ declaration"
            )
        return found if sizes is None else found.completed(sizes)

    def _check_programmatic(self, name: str) -> None:
        """Raise where the kernel does not execute ``griddepcontrol.wait``."""
        symbol = self._symbol(name)
        if isinstance(self._code, str):
            image = jit.compiler.compile(self._code, self._names, arch="compute_90")
            text, symbol = image.code.decode(), image.lowered.get(name, symbol)
        elif self._is_ptx:
            text = self._code.decode()
        else:
            raise ValueError(
                f"{name}: pdl=True wants source or PTX, whose instructions can be read"
            )
        _, _, body = text.partition(f".entry {symbol}")
        if "griddepcontrol.wait" not in body.partition(".entry ")[0]:
            raise ValueError(
                f"{name}: pdl=True, and the kernel never executes griddepcontrol.wait "
                "(cudaGridDependencySynchronize()) before it touches global memory"
            )

    def _told(self, name: str, symbol: str) -> Signature | None:
        image = self._image(Device.current().index)
        if image is None:
            return None
        return image.signatures.get(name) or image.signatures.get(symbol)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Module is code loaded in this process and is not pickled; make it from "
                        "its source there")

    def __repr__(self) -> str:
        return f"<cyrt.Module with {', '.join(self.names) or 'no kernels'}>"
