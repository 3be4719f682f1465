"""The code of a fused kernel: compiled with the options of the plain kernels, or read from the disk
cache."""

from __future__ import annotations

from cyrt import jit
from cyrt.builtin.entry import set_up
from cyrt.builtin.fusion.generator import Fused
from cyrt.builtin.loading import TEMPLATES
from cyrt.driver.errors import CompileError
from cyrt.runtime.device import Device
from cyrt.runtime.module import LoadedFunction, LoadedModule

#: The assembler, unlike the compiler, sees through a fence: it would contract a product and a sum
#: of two operations.
EXACT = "--ptxas-options=-fmad=false"


def options(arch: str) -> tuple[str, ...]:
    """Return the options of the compiler for an architecture."""
    exact = (EXACT,) if arch.startswith("sm_") else ()
    return f"-I{TEMPLATES}", f"-I{TEMPLATES / 'include'}", *exact


def compile(fused: Fused, device: Device) -> bytes:
    """Return a fused kernel's code for a device.

    Raises
    ------
    CompileError
        If the source does not compile, there is no NVRTC, or it does not know the GPU: the driver
        would assemble PTX, with other options.
    """
    arch = jit.compiler.architecture(device.compute_capability, device.emulated)
    if not arch.startswith("sm_") and not device.emulated:
        raise CompileError(
            "nvrtcGetSupportedArchs",
            -1,
            "NVRTC_ERROR_UNSUPPORTED_ARCH",
            f"NVRTC does not know {device}, and operations are fused in its own code only: "
            "install a newer NVRTC",
        )
    return jit.compiler.compile(
        fused.source, arch=arch, options=options(arch), filename=f"{fused.name}.cu"
    ).code


def load(fused: Fused, code: bytes, device: Device) -> LoadedFunction:
    """Load a fused kernel's code on a device."""
    function = LoadedModule(code, device).function(fused.name)
    set_up(function, device.index, len(fused.params), "JIT, of several operations")
    return function
