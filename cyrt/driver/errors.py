"""The exceptions of the driver layer, and the advice added to a driver's error code."""

from __future__ import annotations

from numpy.linalg import LinAlgError as _NumPyError

_ADVICE = {
    "CUDA_ERROR_NO_DEVICE": "No GPU is visible: install the NVIDIA driver, check nvidia-smi and "
    "CUDA_VISIBLE_DEVICES, or set CYRT_DEVICE=emulated.",
    "CUDA_ERROR_INVALID_IMAGE": "The code is neither PTX, cubin nor fatbin, or it is damaged.",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "The code holds nothing for this device's architecture; "
    "compile it for that, or to PTX.",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "The PTX is newer than the driver: compile to a cubin, "
    "or with an older NVRTC (pip install 'cyrt[cu12]').",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "Fewer threads a block, or less shared memory.",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "A kernel accessed memory outside its buffers.",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "A kernel accessed an address that is not a multiple of the "
    "access's size.",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "A thread's stack is full or damaged: "
    "Device.set_limit('stack', nbytes) makes it larger.",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "The driver's library and its kernel module differ: "
    "restart the machine after a driver update.",
    "CUDA_ERROR_SYSTEM_NOT_READY": "Services that the driver needs (fabric manager, persistence "
    "daemon) are not running.",
}

# Advice on the traps of cyrt's own kernels. A report of the emulated device ends with the label
# before the trap.
_TRAPS = {
    "trap: index_out_of_range": "An element of an index array is out of range: with CYRT_CHECK=1 "
    "the call itself raises an IndexError, which names the index.",
    "trap: target_out_of_range": "A target of cross_entropy is neither an index of the axis nor "
    "ignore_index: with CYRT_CHECK=1 the call itself raises an IndexError, which names the target.",
}

NO_ADDRESS_SPACE = (
    "The emulated device reserves the addresses of its whole memory when it is opened, and this "
    "process may not have so many (ulimit -v): set CYRT_EMULATED_MEMORY, which is 8G by default, "
    "to less."
)

# The text of a fault on a GPU. The emulated device has a text of its own, with kernel and address.
GPU_FAULT = (
    "The device can be used no more in this process: restart it. CYRT_DEVICE=emulated names the "
    "kernel, the thread and the address."
)

# After these errors the context returns the same code for every call (cuda.h, CUresult).
STICKY = frozenset((700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999))


class CudaError(RuntimeError):
    """A CUDA call failed.

    Attributes
    ----------
    call : str
        The function that failed, for example ``"cuMemAlloc"``.
    name : str
        The driver's name of the code, for example ``"CUDA_ERROR_OUT_OF_MEMORY"``.
    code : int
        The code, a value of ``CUresult`` or of ``nvrtcResult``.
    """

    __module__ = "cyrt"

    def __init__(self, call: str, code: int, name: str, text: str = "", detail: str = ""):
        super().__init__(call, code, name, text, detail)
        self.call = call
        self.code = code
        self.name = name
        self.text = text
        self.detail = detail

    def __str__(self) -> str:
        message = f"{self.call} failed: {self.name} ({self.code})"
        if self.text:
            message += f": {self.text}"
        traps = [text for end, text in _TRAPS.items() if end in self.detail]
        for more in (self.detail, *traps, _ADVICE.get(self.name, "")):
            if more:
                message += f"\n{more}"
        return message


class LinAlgError(_NumPyError):
    """A matrix has no result: it is singular, not positive definite or not finite.

    The next call that waits for a value of the stream raises it; see :func:`cyrt.linalg.cholesky`.
    It is a subclass of NumPy's exception of that name.
    """

    __module__ = "cyrt.linalg"

    def __init__(self, message: str = ""):
        super().__init__(message)


class OutOfMemoryError(CudaError, MemoryError):
    """The device is out of memory, even after the pool returned its free memory."""

    __module__ = "cyrt"


class CompileError(CudaError):
    """A source or an image could not be compiled to code for the device.

    Attributes
    ----------
    log : str
        The compiler's output.
    """

    __module__ = "cyrt"

    def __init__(self, call: str, code: int, name: str, text: str = "", log: str = ""):
        super().__init__(call, code, name, text, log)
        self.log = log
