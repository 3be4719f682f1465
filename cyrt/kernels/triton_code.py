"""Code of Triton: functions with ``@triton.jit``, and kernels that Triton has compiled.

Source of the conventions: ``triton/runtime/jit.py`` (specialisation) and
``triton/backends/nvidia/driver.py`` (the launch) of Triton 3.6 to 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from cyrt.jit.parameters import Parameter, Signature, by_value, pointer
from cyrt.kernels.kernel import Kernel
from cyrt.kernels.module import Module

#: Triton's scalar types, and those of C++.
_TYPES = {
    "i1": "bool", "u1": "bool",
    "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
    "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long",
    "fp16": "__half", "bf16": "__nv_bfloat16", "fp32": "float", "f32": "float", "fp64": "double",
}  # fmt: skip
_FLOAT8 = re.compile(r"fp8e\w+$")
_LONG_NAME = re.compile(r"^(?:tl\.)?(?:(u?)int(\d+)|float(\d+)|b(float16)|(bool))$")
_CONSTANT = "constexpr"
#: The metadata that a launch needs, and the names of the hidden trailing pointers.
_NEEDED = ("name", "shared", "num_warps", "target")
_SCRATCH = ("global_scratch_size", "profile_scratch_size")


class TritonCode(NamedTuple):
    """A compiled kernel and the geometry of its launches.

    Attributes
    ----------
    signature : Signature
        All parameters, among them the `hidden` ones, which the caller does not pass.
    ctas : int
        The blocks of a cluster, which Triton's grid counts.
    """

    image: bytes
    signature: Signature
    hidden: int
    threads: int
    smem: int
    ctas: int
    cooperative: bool

    def load(self) -> Kernel:
        """Return the kernel, which is loaded on the current device."""
        module = Module(self.image, strided=True)
        module._declared[self.signature.name] = self.signature
        return Kernel._of(module, self.signature.name, self.hidden, self.cooperative)


def _spelled(type: Any) -> tuple[str, bool, bool]:
    """Return Triton's name of the type, whether it is a pointer, and whether it is const."""
    text = str(type).strip()
    const = text.startswith("const ")
    text = text.removeprefix("const ").strip().removeprefix("tl.")
    if text.endswith("*"):
        text = f"*{text[:-1].strip()}"
    is_pointer = text.startswith("*")
    text = text.removeprefix("*").strip()
    if is_pointer and text.startswith("k"):
        const, text = True, text[1:]
    if found := _LONG_NAME.match(text):
        sign, width, float_width, bfloat, _ = found.groups()
        text = (
            f"{sign or 'i'}{width}"
            if width
            else f"fp{float_width}"
            if float_width
            else "bf16"
            if bfloat
            else "i1"
        )
    return text, is_pointer, const


def _parameter(kernel: str, name: str, type: Any) -> Parameter:
    """Return the parameter of one of Triton's types: ``"*fp32"``, ``"*kfp32"``, ``"i32"``."""
    text, is_pointer, const = _spelled(type)
    if text.startswith(("tensordesc", "nvTmaDesc")) or isinstance(type, tuple):
        what = "tuples" if isinstance(type, tuple) else "tensor descriptors made on the host"
        raise TypeError(
            f"{kernel}: {name}: {type}: {what} cannot be passed by cyrt; pass "
            "pointers, sizes and strides, and let the kernel compute addresses from them"
        )
    if is_pointer and _FLOAT8.match(text):
        return pointer("const " * const + "unsigned char", const=const, name=name)
    if is_pointer and text.startswith("*"):
        return pointer("void*", const=False, name=name)
    if text not in _TYPES:
        raise TypeError(
            f"{kernel}: {name}: {type!r} is not a type of an argument in Triton, such as '*fp32', "
            "'*kfp16' (only read), 'i32' or 'fp32'"
        )
    if is_pointer:
        return pointer("const " * const + _TYPES[text], const=const, name=name)
    return by_value(_TYPES[text], name)


def _metadata(compiled: Any, *needed: str) -> Any:
    """Return the metadata of a compiled kernel, which has these names."""
    metadata = getattr(compiled, "metadata", None)
    if isinstance(metadata, Mapping):
        metadata = SimpleNamespace(**metadata)
    missing = [each for each in needed if not hasattr(metadata, each)]
    if metadata is None or missing:
        raise TypeError(
            "Kernel.from_triton: the compiled kernel has no metadata "
            f"{'at all' if metadata is None else missing[0]}; give the object that triton.compile, "
            "warmup or a launch returns, with its .asm and .metadata (the .json file beside the "
            "code in Triton's cache)"
        )
    return metadata


def _read_code(
    compiled: Any, signature: Signature, capability: tuple[int, int], emulated: bool
) -> TritonCode:
    """Check a compiled kernel against the device, and choose its PTX or its cubin."""
    metadata = _metadata(compiled, *_NEEDED)
    target = metadata.target
    if isinstance(target, Mapping):
        target = SimpleNamespace(**target)
    name = metadata.name
    if target.backend != "cuda":
        raise ValueError(f"{name}: compiled for {target.backend}, and cyrt runs CUDA's code")
    for each, advice in zip(
        _SCRATCH,
        (
            "it is for tensor descriptors that the kernel makes: load and store through pointers",
            "compile it without instrumentation",
        ),
        strict=True,
    ):
        if size := getattr(metadata, each, 0):
            raise ValueError(
                f"{name}: needs {size:,} bytes of scratch memory a block ({each}), which cyrt does "
                f"not allocate; {advice}"
            )
    if getattr(metadata, "tensordesc_meta", None):
        raise ValueError(
            f"{name}: takes tensor descriptors made on the host, which cyrt does not pass; pass "
            "pointers, sizes and strides"
        )
    hidden = sum(hasattr(metadata, each) for each in _SCRATCH)
    parameters = signature.parameters + (pointer("void", const=False),) * hidden
    return TritonCode(
        _image(compiled, name, int(target.arch), capability, emulated),
        Signature(name, parameters),
        hidden,
        32 * metadata.num_warps,
        metadata.shared,
        getattr(metadata, "num_ctas", 1),
        bool(getattr(metadata, "launch_cooperative_grid", False)),
    )


def _image(
    compiled: Any, name: str, arch: int, capability: tuple[int, int], emulated: bool
) -> bytes:
    """Return the cubin, or PTX if the device needs that."""
    own = 10 * capability[0] + capability[1]
    asm = getattr(compiled, "asm", None) or {}
    # Code for 9.0 and up is for one architecture only (sm_90a). Older code also runs on later GPUs;
    # a cubin runs on those of its generation.
    fits = arch <= own if emulated or arch < 90 else arch == own
    if fits and "cubin" in asm and not emulated and arch // 10 == own // 10:
        return _bytes(asm["cubin"])
    if fits and "ptx" in asm:
        return _bytes(asm["ptx"])
    if emulated and asm and "ptx" not in asm:
        raise ValueError(
            f"{name}: a cubin, and the emulated device runs PTX only: give a compiled kernel whose "
            "asm has 'ptx', or the function with @triton.jit"
        )
    if not asm:
        raise TypeError(f"{name}: the compiled kernel has no code: its asm has no 'cubin' or 'ptx'")
    raise ValueError(
        f"{name}: compiled for compute capability {arch // 10}.{arch % 10}, and the device has "
        f"{capability[0]}.{capability[1]}: compile it for GPUTarget('cuda', {own}, 32), or give "
        "Kernel.from_triton the function with @triton.jit"
    )


def _bytes(code: str | bytes) -> bytes:
    return code.encode() if isinstance(code, str) else bytes(code)


class Compiled:
    """A kernel that Triton has compiled, for arguments with the properties of its
    specialisation."""

    compiled = True

    def __init__(self, compiled: Any, signature: Any) -> None:
        self._compiled = compiled
        self.name: str = _metadata(compiled, "name").name
        src = getattr(compiled, "src", None)
        types: dict[Any, Any] = dict(getattr(src, "signature", None) or {})
        names = [str(name) for name in types]
        constants = {
            _place(key, names): value
            for key, value in (getattr(src, "constants", None) or {}).items()
        }
        aligned = {
            _place(key, names)
            for key, value in (getattr(src, "attrs", None) or {}).items()
            if ["tt.divisibility", 16] in map(list, value)
        }
        places = [
            i for i, type in enumerate(types.values()) if type != _CONSTANT and i not in constants
        ]
        self.constants = {names[i]: value for i, value in constants.items()}
        if signature is None and not types:
            raise TypeError(
                f"{self.name}: the compiled kernel does not say what its arguments are; give "
                "signature=, such as '*fp32, *fp32, i32'"
            )
        found = {names[i]: types[list(types)[i]] for i in places}
        if signature is not None:
            found = _given_types(self.name, signature, list(found) if types else None)
        self.parameters = [_parameter(self.name, name, type) for name, type in found.items()]
        self.by_alignment = [i in aligned for i in places] or [False] * len(self.parameters)
        self.by_value = [False] * len(self.parameters)
        self.signature = Signature(self.name, tuple(self.parameters))

    def code_for(self, forms: bytes, capability: tuple[int, int], emulated: bool) -> TritonCode:
        """Return the code; raise an error if the device cannot run it."""
        return _read_code(self._compiled, self.signature, capability, emulated)


def _place(key: Any, names: list[str]) -> int:
    """Return the index of a parameter, which Triton gives by its name or as ``(index,)``."""
    if isinstance(key, tuple):
        key = key[0]
    return names.index(key) if isinstance(key, str) else int(key)


def _given_types(kernel: str, signature: Any, names: list[str] | None) -> dict[str, Any]:
    """Return the types by name, in the parameters' order. `names` is None if it is not known."""
    if isinstance(signature, Mapping):
        if names is None:
            return dict(signature)
        if set(signature) != set(names):
            raise ValueError(
                f"{kernel}: signature: expected the types of {', '.join(names) or 'nothing'} "
                f"(all parameters that are not constants), got those of "
                f"{', '.join(map(str, signature)) or 'nothing'}"
            )
        return {name: signature[name] for name in names}
    if not isinstance(signature, str):
        raise TypeError(
            f"{kernel}: signature: expected Triton's types by name, or as a str such as "
            f"'*fp32, i32', got {type(signature).__name__}"
        )
    types = [each.strip() for each in signature.split(",")] if signature.strip() else []
    if names is None:
        names = [f"arg{i}" for i in range(len(types))]
    if len(types) != len(names):
        raise ValueError(
            f"{kernel}: signature: expected {len(names)} types, of {', '.join(names) or 'nothing'} "
            f"(all parameters that are not constants), got {len(types)}: {signature}"
        )
    return dict(zip(names, types, strict=True))


class Function:
    """A function with ``@triton.jit``, which is compiled for each specialisation."""

    compiled = False

    def __init__(
        self, function: Any, signature: Any, constants: Any, options: dict[str, int]
    ) -> None:
        self.name: str = function.__name__
        if constants is not None and not isinstance(constants, Mapping):
            raise TypeError(
                f"{self.name}: constants: expected a mapping by name, got "
                f"{type(constants).__name__}"
            )
        self._function, self._options = function, options
        given = dict(constants or {})
        if unknown := given.keys() - {each.name for each in function.params}:
            raise ValueError(
                f"{self.name}: constants: it has no parameters {', '.join(map(str, unknown))}; its "
                f"parameters: {', '.join(function.arg_names)}"
            )
        self.constants: dict[str, Any] = {}
        for each in function.params:
            if each.name in given:
                self.constants[each.name] = given[each.name]
            elif each.is_constexpr and each.has_default:
                self.constants[each.name] = each.default
            elif each.is_constexpr:
                raise ValueError(
                    f"{self.name}: constants: {each.name} is a constexpr without a value: "
                    f"constants={{{each.name!r}: ...}}"
                )
        left = [each for each in function.params if each.name not in self.constants]
        names = [each.name for each in left]
        if signature is None:
            raise TypeError(
                f"{self.name}: expected signature=, Triton's types of {', '.join(names)}, such as "
                "'*fp32, *fp32, i32'"
            )
        types = _given_types(self.name, signature, names)
        self._types = {
            name: "*" * is_pointer + "k" * (is_pointer and const) + text
            for name, (text, is_pointer, const) in (
                (name, _spelled(type)) for name, type in types.items()
            )
        }
        self.parameters = [_parameter(self.name, name, type) for name, type in types.items()]
        special = [not each.do_not_specialize for each in left]
        self.by_alignment = [
            yes and not each.do_not_specialize_on_alignment
            for yes, each in zip(special, left, strict=True)
        ]
        self.by_value = special
        self.signature = Signature(self.name, tuple(self.parameters))

    def code_for(self, forms: bytes, capability: tuple[int, int], emulated: bool) -> TritonCode:
        """Compile the variant for these forms of the arguments (see `triton`)."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        function, order = self._function, self._function.arg_names
        constants = dict(self.constants)
        types = {name: _CONSTANT for name in constants} | self._types
        attributes = {}
        for (name, type), form in zip(self._types.items(), forms, strict=True):
            if form & 2:
                constants[name] = None if type.startswith("*") else 1
                types[name] = _CONSTANT
            elif form & 1:
                attributes[order.index(name),] = [["tt.divisibility", 16]]
        # The emulated device runs no wgmma, with which products are compiled for 9.0.
        older = emulated and self._options["num_ctas"] == 1
        arch = 80 if older else 10 * capability[0] + capability[1]
        compiled = triton.compile(
            ASTSource(
                function,
                {name: types[name] for name in order},
                {(order.index(name),): value for name, value in constants.items()},
                attributes,
            ),
            target=GPUTarget("cuda", arch, 32),
            options=self._options,
        )
        kept = [p for p, form in zip(self.parameters, forms, strict=True) if not form & 2]
        return _read_code(compiled, Signature(self.name, tuple(kept)), capability, emulated)


def source(
    function: Any, signature: Any, constants: Any, num_warps: int, num_stages: int, num_ctas: int
) -> Function | Compiled:
    """Check the arguments of `Kernel.from_triton`, and return the code that they describe."""
    if hasattr(function, "metadata") or hasattr(function, "asm"):
        if constants:
            raise ValueError(
                "Kernel.from_triton: constants= are for functions with @triton.jit, and the kernel "
                "is compiled already"
            )
        return Compiled(function, signature)
    kind = type(function).__name__
    if hasattr(function, "fn") and (hasattr(function, "configs") or hasattr(function, "values")):
        raise TypeError(
            f"Kernel.from_triton: an autotuned function ({kind}): give the function inside, "
            "function.fn, and the constants, num_warps and num_stages of one configuration "
            "(function.best_config)"
        )
    if kind == "InterpretedFunction":
        raise TypeError(
            "Kernel.from_triton: with TRITON_INTERPRET=1 Triton interprets the function and does "
            "not compile it; unset it, and cyrt's emulated device runs what is compiled"
        )
    if not hasattr(function, "arg_names") or not hasattr(function, "params"):
        raise TypeError(
            "Kernel.from_triton: expected a function with @triton.jit, or a kernel that Triton has "
            f"compiled, got {function!r}"
        )
    is_gluon = getattr(function, "is_gluon", None)
    if is_gluon is not None and is_gluon():
        raise TypeError(
            "Kernel.from_triton: a function of Gluon: compile it by its warmup(), and give what "
            "that returns"
        )
    options = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}: expected a number of at least 1, got {value!r}")
    return Function(function, signature, constants, options)
