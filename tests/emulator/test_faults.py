"""What the emulated device reports of a kernel that goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

pytestmark = pytest.mark.usefixtures("only_emulated")

# Beside an innocent kernel in the same module: nothing may be blamed on that.
PROGRAM = '''
import cyrt

module = cyrt.Module(r"""
extern "C" {
__global__ void innocent(int* out) { out[threadIdx.x] = threadIdx.x; }
KERNEL
}""")
memory = cyrt.Buffer(400)
try:
    module["innocent"][1, 100](memory)
    cyrt.synchronize()
    module["faulty"][GEOMETRY](ARGUMENTS)
    cyrt.synchronize()
except cyrt.CudaError as error:
    print("fault:", error.name)
    print(error)
'''


@pytest.fixture
def fault(python):
    """Run the kernel `faulty` in a process of its own; gives the error's name and text."""

    def run(kernel, geometry="1, 32", arguments="memory", **environment):
        program = PROGRAM.replace("KERNEL", kernel).replace("GEOMETRY", geometry)
        done = python(program.replace("ARGUMENTS", arguments), **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        printed, _, fault = done.stdout.partition("fault: ")
        name, _, text = fault.partition("\n")
        return name, printed + text

    return run


@pytest.mark.parametrize(
    ("access", "doing"),
    [("out[i] = 1;", "write"), ("out[0] = out[i];", "read"), ("atomicAdd(out + i, 1);", "atomic")],
)
def test_out_of_bounds(fault, access, doing):
    name, text = fault(
        "__global__ void faulty(int* out) {"
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; {access} }}",
        "4, 32",
        CYRT_POOL="0",
    )
    assert name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert "kernel faulty, block (3,0,0), thread (4,0,0), PTX line" in text
    assert doing in text
    assert "of 4 bytes at address 0x" in text
    assert "0 bytes past the end of argument 1 (int* out), 400 bytes at 0x" in text


@pytest.mark.parametrize("checked", ["0", "1"])
@pytest.mark.parametrize(
    ("offset", "place"),
    [
        ("1", "4 bytes before argument 1 (int* out), 400 bytes at 0x2000000000000"),
        ("(1ll << 45)", "no memory of this device"),
    ],
)
def test_before_the_first_allocation(python, checked, offset, place):
    """Page-locked memory of the host lies at lower addresses, and is no neighbour."""
    done = python(
        f"""
        import cyrt
        kernel = cyrt.Kernel(
            'extern "C" __global__ void faulty(int* out) {{ out[-{offset}] = 1; }}', "faulty")
        pinned, memory = cyrt.PinnedBuffer(4), cyrt.Buffer(400)
        kernel[1, 1](memory)
        try:
            cyrt.synchronize()
        except cyrt.CudaError as error:
            print(error)
        """,
        CYRT_CHECK=checked,
        CYRT_POOL="0",
    )
    assert f"({place})" in done.stdout, done.stderr


def test_coordinates(fault):
    _, text = fault(
        "__global__ void faulty(int* out) {"
        " if (blockIdx.y == 2 && threadIdx.z == 1 && threadIdx.y == 3 && threadIdx.x > 4)"
        " *(int*)(size_t)out[0] = 1; }",
        "(2, 3), (8, 4, 2)",
    )
    assert "block (0,2,0), thread (5,3,1)" in text or "block (1,2,0), thread (5,3,1)" in text
    assert "write of 4 bytes at address 0x0" in text


def test_misaligned(fault):
    name, text = fault("__global__ void faulty(char* out) { *(int*)(out + 2 * threadIdx.x) = 1; }")
    assert name == "CUDA_ERROR_MISALIGNED_ADDRESS"
    assert "thread (1,0,0)" in text
    assert "which is not aligned to that size" in text


def test_use_after_free(fault):
    name, text = fault(
        "__global__ void faulty(int* out) { out[threadIdx.x] = 1; }",
        arguments="cyrt.pointer(memory.ptr, memory.nbytes), *[memory.free()][1:]",
        CYRT_POOL="0",
    )
    assert name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert "freed" in text


@pytest.mark.parametrize(
    ("kernel", "byte"),
    [
        ("__global__ void faulty(int* out) { int* fresh = (int*)malloc(8); out[0] = *fresh; }", 0),
        (
            "__global__ void faulty(int* out) { __shared__ char x[8]; x[0] = x[1] = 1;"
            " __syncthreads(); out[0] = *(volatile int*)x; }",
            2,
        ),
    ],
)
def test_uninitialised_read(fault, kernel, byte):
    name, text = fault(kernel, CYRT_CHECK="1")
    assert name == "CUDA_ERROR_LAUNCH_FAILED"
    assert f"whose byte {byte} nobody has written" in text
    assert ("0x0 of shared memory" in text and "is a barrier missing?" in text) == (
        "shared" in kernel
    )
    assert fault(kernel, CYRT_CHECK="0")[0] == ""


def test_shared_overrun(fault):
    name, text = fault(
        "__global__ void faulty(int* out) { extern __shared__ int x[];"
        " x[threadIdx.x] = out[0]; __syncthreads(); out[1] = x[31 - threadIdx.x]; }",
        "1, 32, 100",
    )
    assert name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert "thread (25,0,0)" in text
    assert "of shared memory, which has 100 bytes" in text


@pytest.mark.parametrize(
    ("statement", "name", "reason"),
    [
        ('asm volatile("trap;");', "CUDA_ERROR_LAUNCH_FAILED", "trap"),
        ("__trap();", "CUDA_ERROR_LAUNCH_FAILED", "trap"),
        ('asm volatile("brkpt;");', "CUDA_ERROR_LAUNCH_FAILED", "brkpt"),
        ("((void (*)(int*))out[0])(out);", "CUDA_ERROR_INVALID_PC", "call through a pointer"),
    ],
)
def test_traps(fault, statement, name, reason):
    kernel = f"__global__ void faulty(int* out) {{ if (threadIdx.x == 9) {statement} }}"
    got, text = fault(kernel)
    assert got == name
    assert "thread (9,0,0)" in text
    assert reason in text


def test_assert(fault):
    name, text = fault(
        "#include <cassert>\n__global__ void faulty(int* out) { assert(out[threadIdx.x] < 20); }"
    )
    assert name == "CUDA_ERROR_ASSERT"
    assert "out[threadIdx.x] < 20" in text
    assert "thread (20,0,0)" in text


def test_output_is_written_before_the_fault_is_reported(fault):
    _, text = fault(
        "__global__ void faulty(int* out) {"
        r' for (int i = 0; i < 1000; ++i) printf("line %d\n", i); __trap(); }',
        "1, 1",
        PYTHONUNBUFFERED="1",
    )
    before, _, _ = text.partition("CUDA_ERROR_LAUNCH_FAILED")
    assert before.count("line") == 1000


@pytest.mark.parametrize(
    ("statement", "waits"),
    [
        (
            'if (threadIdx.x < 32) asm volatile("bar.sync 3, 64;");'
            ' else asm volatile("bar.sync 4, 64;");',
            "waits for barrier 3",
        ),
        (
            "if (threadIdx.x < 8) __shfl_sync(~0u, out[0], 1); else __syncthreads();",
            "waits for the other lanes",
        ),
    ],
)
def test_deadlock(fault, statement, waits):
    name, text = fault(f"__global__ void faulty(int* out) {{ {statement} }}", "1, 64")
    assert name == "CUDA_ERROR_LAUNCH_TIMEOUT"
    assert waits in text
    assert "all 64 threads left of the block wait, and none can go on" in text


def test_stack_overflow(fault):
    name, text = fault(
        "__device__ int deep(int* out, int n) {"
        " int x[64]; for (int i = 0; i < 64; ++i) x[i] = out[i] + n;"
        " return deep(out, n + 1) + x[out[n % 64] & 63]; }\n"
        "__global__ void faulty(int* out) { out[0] = deep(out, 0); }"
    )
    assert name == "CUDA_ERROR_HARDWARE_STACK_ERROR"
    assert "stack" in text


def test_first_fault_stays(python):
    """After a fault every call on the device fails and names it; a reset recovers."""
    done = python('''
        import cyrt
        kernel = cyrt.Kernel(r"""
        extern "C" __global__ void faulty(int* out) { out[1 << 28] = 1; }""", "faulty")
        memory = cyrt.Buffer(4)
        kernel[1, 1](memory)
        for attempt in range(2):
            try:
                cyrt.synchronize()
            except cyrt.CudaError as error:
                print("kernel faulty" in f"{error} {error.__cause__}")
        del memory, kernel
        cyrt.Device(0).reset()
        memory = cyrt.Buffer(4)
        memory.fill(1)
        cyrt.synchronize()
        print("recovered")
    ''')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", "True", "recovered"]


UNSUPPORTED = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b64 %rd<2>;
    .reg .f32 %f<5>;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];
    ret;
}
"""


def test_unsupported_instruction_names_its_line():
    with pytest.raises(cyrt.CudaError, match=r"(?s)line 8.*tex\.2d\.v4\.f32\.f32") as caught:
        cyrt.Module(UNSUPPORTED)["k"]
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"


def test_undefined_function_is_named():
    source = "__device__ int elsewhere(int); __global__ void k(int* x) { *x = elsewhere(1); }"
    with pytest.raises(cyrt.CudaError, match="Unresolved extern function '_Z9elsewherei'"):
        cyrt.Module(source, ["k"])["k"]


@pytest.mark.parametrize(
    "access",
    [
        "*(int*)target = 1;",
        "atomicAdd((int*)target, 1);",
        "atomicExch((int*)target, 1);",
        'asm volatile("st.v2.u32 [%0], {%1, %1};" :: "l"(target), "r"(1));',
    ],
)
def test_generic_writes_to_constant_memory(fault, access):
    """A GPU lets them happen, and what the kernels after it read is anybody's guess."""
    name, text = fault(
        "__constant__ int fixed[64]; __global__ void faulty(int* out) {"
        ' size_t target; asm volatile("mov.u64 %0, %1;" : "=l"(target)'
        ' : "l"(fixed + threadIdx.x * 2));'  # a compiler that knew it would trap
        f" if (threadIdx.x == 3) {{ {access} }} }}"
    )
    assert name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert "kernel faulty, block (0,0,0), thread (3,0,0)" in text
    assert "24 bytes into the 256-byte allocation" in text
    assert "which is constant memory" in text


def test_constant_memory_is_read_and_written_from_the_host():
    module = cyrt.Module(
        "__constant__ int fixed[4]; __global__ void copy(int* out) {"
        " out[threadIdx.x] = *(volatile int*)(fixed + threadIdx.x); }",
        ["copy"],
    )
    out = cyrt.Buffer(16)
    found = np.empty(4, np.int32)
    for value in (5, 6):
        module.get_global("fixed").copy_from(np.full(4, value, np.int32))
        module["copy"][1, 4](out)
        out.copy_to(found)
        assert found.tolist() == [value] * 4


@pytest.mark.parametrize(
    ("access", "threads"),
    [
        ("st.u32 [%0], %1;", 32),
        ("st.u32 [%0], %1;", 3),
        ("st.v2.u32 [%0], {%1, %1};", 32),
        ("red.add.u32 [%0], %1;", 32),
    ],
)
def test_generic_writes_to_parameters(fault, access, threads):
    name, text = fault(
        "struct Pair { int a, b; };"
        " __global__ void faulty(int* out, const __grid_constant__ Pair p)"
        f' {{ asm volatile("{access}" :: "l"(&p), "r"(*out)); }}',
        f"1, {threads}",
        "memory, bytes(8)",
    )
    assert name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert "kernel faulty, block (0,0,0), thread (0,0,0)" in text
    assert "of the kernel's parameters" in text


LIMITS = """.version {version}
.target sm_90
.address_size 64
{module}
.visible .entry k({params}) {directive}
{{
    {body}
    ret;
}}
"""


def limited(module="", params=".param .u64 p", directive="", body="", version="8.0"):
    return LIMITS.format(
        module=module, params=params, directive=directive, body=body, version=version
    ).encode()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"body": ".shared .b8 x[49153];"}, r"shared data \(0xc001 bytes, 0xc000 max\)"),
        ({"body": ".shared .b8 x[81920];"}, "Entry function 'k' uses too much shared data"),
        ({"body": ".shared .b8 x[40000]; .shared .b8 y[40000];"}, "0x13880 bytes"),
        ({"body": ".shared .b8 x[4294967297];"}, "0x100000001 bytes"),
        (
            {"module": ".shared .b8 x[81920];", "body": ".reg .b32 %r; mov.u32 %r, x;"},
            "shared data",
        ),
        ({"module": ".const .b8 x[65537];"}, "global constant data"),
        ({"module": ".const .b8 x[40000]; .const .b8 y[40000];"}, r"0x13880 bytes, 0x10000 max"),
        ({"body": ".local .b8 x[524289];"}, "local data"),
        ({"params": ".param .b8 x[4353]"}, r"parameter space \(0x1101 bytes, 0x1100 max\)"),
        ({"params": ".param .b8 x[32765]", "version": "8.1"}, "0x7ffc max"),
        ({"params": ".param .b8 x[4294967300]"}, "parameter space"),
        ({"directive": ".maxntid 0"}, "maxntid of 0"),
        ({"directive": ".reqntid 32, 0"}, "of 0"),
    ],
)
def test_more_than_the_device_has(parts, text):
    with pytest.raises(cyrt.CudaError, match=text) as caught:
        cyrt.Module(limited(**parts))["k"]
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"


@pytest.mark.parametrize(
    "parts",
    [
        {"body": ".shared .b8 x[49152];"},
        {"module": ".shared .b8 x[81920];"},
        {"module": ".const .b8 x[65536];"},
        {"body": ".local .b8 x[524288];"},
        {"params": ".param .b8 x[4352]"},
        {"params": ".param .b8 x[32764]", "version": "8.1"},
        {"directive": ".maxntid 2147483647, 2147483647, 4"},
    ],
)
def test_as_much_as_the_device_has(parts):
    cyrt.Module(limited(**parts))["k"]


def test_the_label_before_a_trap_says_why(fault):
    """Inline code may be there several times: its labels are in a scope."""
    name, text = fault(
        "__global__ void faulty(int* out) {"
        ' if (threadIdx.x == 3) asm volatile("{ too_many: trap; }");'
        ' if (threadIdx.x == 5) asm volatile("{ too_many: trap; }"); out[0] = 1; }'
    )
    assert name == "CUDA_ERROR_LAUNCH_FAILED"
    assert "thread (3,0,0)" in text
    assert ": trap: too_many\n" in text


def test_a_trap_without_a_label(fault):
    _, text = fault("__global__ void faulty(int* out) { if (threadIdx.x == 3) __trap(); }")
    assert ": trap\n" in text
