"""The memory that a launch may use: on the emulated device, an access of the pool's memory outside
it is a fault."""

from __future__ import annotations

import pytest

from cyrt.jit.signature import from_declaration
from cyrt.runtime import image

pytestmark = pytest.mark.usefixtures("only_emulated")

# Each case runs, and what it left is printed: "none", or the fault's text.
PROGRAM = r'''
import numpy as np

import cyrt

SOURCE = """
struct View { float* data; int n; };
extern "C" {
__global__ void put(float* x, int i) { x[i] = 1; }
__global__ void copy(const float* x, float* y, int i) { y[0] = x[i]; }
__global__ void add(float* x, int i) { atomicAdd(x + i, 1.f); }
__global__ void pair(float2* x, int i) { float2 v = *(float2*)((float*)x + i); x[0] = v; }
__global__ void in_struct(View v, float* y, int i) { v.data[i] = 1; y[0] = 1; }
__global__ void at_struct(const View* v, int i) { v->data[i] = 1; }
__global__ void in_table(float** rows, int row, int i) { rows[row][i] = 1; }
__global__ void at_number(unsigned long long x, float* y) { *(float*)x = y[0]; }
__global__ void text(const char* x) { printf("%s", x); }
}
"""
VARIABLE = """
__device__ unsigned seen;
extern "C" __global__ void count(float* x, int i) { atomicAdd(&seen, 1); x[i] = 1; }
extern "C" __global__ void put(unsigned* x, int i) { x[i] = 1; }
"""
ROW = """
__device__ float row[8];
extern "C" __global__ void read(float* x, int i) { x[0] = row[i]; }
"""
POINTER = """
__device__ float* table;
extern "C" __global__ void in_variable(float* x) { table[0] = x[0]; }
"""
VIEW = np.dtype([("data", "u8"), ("n", "i4")], align=True)
cases = []


def case(function):
    cases.append(function)


def kernel(name):
    return cyrt.Kernel(SOURCE, name)[1, 1]


def memory():
    return cyrt.zeros(100), cyrt.zeros(100)


def view(x):
    return np.array((x.ptr, 100), VIEW)[()]


def table(*buffers):
    rows = cyrt.Buffer(8 * len(buffers))
    rows.copy_from(np.array([each.ptr for each in buffers], np.uint64))
    return rows


@case
def inside():
    x, y = memory()
    kernel("put")(x, 99)
    kernel("copy")(x, y, 99)
    kernel("add")(y, 99)
    kernel("pair")(x, 98)


@case
def write():
    kernel("put")(memory()[0], 100)


@case
def read():
    x, y = memory()
    kernel("copy")(x, y, 103)


@case
def before():
    x, y = memory()
    kernel("put")(y, -2)


@case
def before_the_first():
    """It is where the pool's allocation begins."""
    kernel("put")(cyrt.zeros(60000), -1)


@case
def past_a_variable():
    x, _ = memory()
    cyrt.Kernel(ROW, "read")[1, 1](x, 9)


@case
def atomic():
    kernel("add")(memory()[0], 100)


@case
def across():
    kernel("pair")(cyrt.Buffer(396), 98)


@case
def no_bytes():
    kernel("put")(cyrt.zeros(0), 0)


@case
def view_inside():
    kernel("put")(memory()[0][10:20], 89)


@case
def view_outside():
    kernel("put")(memory()[0][10:20], 90)


@case
def foreign_view():
    class Other:
        def __init__(self, x):
            self.__cuda_array_interface__ = x.__cuda_array_interface__
            self.kept = x
    x = memory()[0]
    kernel("put")(Other(x[10:20]), 89)
    kernel("put")(cyrt.pointer(x.__cuda_array_interface__["data"][0] + 40, 40), 89)


@case
def variable():
    cyrt.Kernel(VARIABLE, "count")[1, 1](memory()[0], 99)


@case
def variable_outside():
    cyrt.Kernel(VARIABLE, "count")[1, 1](memory()[0], 100)


@case
def variable_itself():
    module = cyrt.Module(VARIABLE)
    seen = module.get_global("seen")
    module["put"][1, 1](seen, 0)


@case
def pointer_in_variable():
    module, x = cyrt.Module(POINTER), cyrt.Buffer(400)
    module.get_global("table").copy_from(np.array([x.ptr], np.uint64))
    module["in_variable"][1, 1](memory()[0])


@case
def struct():
    x = cyrt.Buffer(400)
    kernel("in_struct")(view(x), memory()[0], 100)


@case
def struct_declared():
    x = cyrt.Buffer(400)
    kernel("in_struct")(view(x), memory()[0], 99, writes=[x])


@case
def struct_outside():
    x = cyrt.Buffer(400)
    kernel("in_struct")(view(x), memory()[0], 100, writes=[x])


@case
def struct_declares_another():
    x = cyrt.Buffer(400)
    kernel("in_struct")(view(x), memory()[0], 0, reads=[memory()[1]])


@case
def struct_declares_nothing():
    x = cyrt.Buffer(400)
    kernel("in_struct")(view(x), memory()[0], 0, writes=[])


@case
def struct_in_memory():
    x, v = cyrt.Buffer(400), cyrt.Buffer(16)
    v.copy_from(view(x).tobytes())
    kernel("at_struct")(v, 100)


@case
def struct_in_an_array():
    x = cyrt.Buffer(400)
    kernel("at_struct")(cyrt.asarray(np.array([x.ptr, 100])), 100)


@case
def struct_in_memory_outside():
    x, v = cyrt.Buffer(400), cyrt.Buffer(16)
    v.copy_from(view(x).tobytes())
    kernel("at_struct")(v, 100, writes=[x])


@case
def rows():
    x = [cyrt.Buffer(400) for _ in range(12)]
    for i in range(12):
        kernel("in_table")(table(*x), i, 99, writes=x)
    kernel("in_table")(table(*x), 5, 100)


@case
def rows_outside():
    x = [cyrt.Buffer(400) for _ in range(3)]
    kernel("in_table")(table(*x), 1, 100, writes=x)


@case
def number():
    x = cyrt.Buffer(400)
    kernel("at_number")(x.ptr, memory()[0])


@case
def number_declares_another():
    x = cyrt.Buffer(400)
    y = memory()[0]
    kernel("at_number")(x.ptr, y, reads=[y])


@case
def encoder():
    x, y = memory()
    made = cyrt.current_encoder()
    made.add_kernel(cyrt.Kernel(SOURCE, "copy"), 1, 1, (x, y, 99), reads=[], writes=[y])
    made.add_kernel(cyrt.Kernel(SOURCE, "put"), 1, 1, (x, 99), cooperative=True)
    made.add_kernel(cyrt.Kernel(SOURCE, "put"), 1, 1, (x, 99), cluster=1)


@case
def encoder_outside():
    x, y = memory()
    cyrt.current_encoder().add_kernel(
        cyrt.Kernel(SOURCE, "copy"), 1, 1, (x, y, 100), reads=[], writes=[y])


@case
def printed():
    x = cyrt.Buffer(4)
    x.fill(65)
    kernel("text")(x)


@case
def host_memory():
    kernel("put")(cyrt.PinnedBuffer(400), 99)


@case
def many_parameters():
    names = [f"p{i}" for i in range(70)]
    source = (f'extern "C" __global__ void many({", ".join("float* " + n for n in names)}, int i)'
              "{ " + " ".join(f"{n}[i] = 1;" for n in names) + " }")
    many = cyrt.Kernel(source, "many")[1, 1]
    x = [cyrt.zeros(10) for _ in names]
    many(*x, 9)
    cyrt.synchronize()
    x[69] = cyrt.zeros(9)
    many(*x, 9)


@case
def ptx_without_types():
    cyrt.Kernel(PTX, "store")[1, 1](cyrt.zeros(2, dtype="int32"), 5)


@case
def loop():
    put = kernel("put")
    x = [cyrt.zeros(100) for _ in range(3)]
    for i in range(300):
        put(x[i % 3], 99)
    cyrt.synchronize()
    for i in range(300):
        put(x[i % 2], 99)


@case
def loop_of_new_arrays():
    add, x = kernel("add"), cyrt.zeros(100)
    for _ in range(600):
        x = x + 1
        add(x, 99)


@case
def loop_outside():
    put = kernel("put")
    x = [cyrt.zeros(100), cyrt.zeros(100), cyrt.zeros(64)]
    for i in range(300):
        put(x[i % 2], 70)
    cyrt.synchronize()
    for i in range(300):
        put(x[2 if i == 250 else i % 2], 70)


PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value) {
    .reg .u64 %a<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %a1, [out];
    ld.param.u32 %r1, [value];
    st.global.u32 [%a1+8], %r1;
}
"""

for each in cases:
    left = "none"
    try:
        each()
        cyrt.synchronize()
    except cyrt.CudaError as error:
        left = str(error).splitlines()[1] if "\n" in str(error) else str(error)
        cyrt.Device().reset()
    print(f"\n{each.__name__}: {left}")
'''
PAST = "(0 bytes past the end of argument 1 (float* x), 400 bytes at 0x"
DECLARED = "(0 bytes past the end of memory that reads= or writes= names, 400 bytes at 0x"
RESULTS = {
    "inside": None,
    "write": f"write of 4 bytes at address 0x ... {PAST}",
    "read": "read of 4 bytes at ... (12 bytes past the end of argument 1 (const float* x), 400",
    "before": "write of 4 bytes at ... (8 bytes before argument 1 (float* x), 400 bytes at 0x",
    "before_the_first": "(4 bytes before argument 1 (float* x), 240000 bytes at 0x",
    "past_a_variable": "(4 bytes past the end of variable row, 32 bytes at 0x",
    "atomic": f"atomic access of 4 bytes at ... {PAST}",
    "across": "read of 8 bytes at ... (the last 4 bytes past the end of argument 1 (float2* x)",
    "no_bytes": "(0 bytes past the end of argument 1 (float* x), 0 bytes at 0x",
    "view_inside": None,
    "view_outside": PAST,
    "foreign_view": None,
    "variable": None,
    "variable_outside": PAST,
    "variable_itself": None,
    "pointer_in_variable": None,
    "struct": None,
    "struct_declared": None,
    "struct_outside": DECLARED,
    "struct_declares_another": "kernel in_struct, ... write of 4 bytes",
    "struct_declares_nothing": "argument 2 (float* y), 400 bytes at 0x",
    "struct_in_memory": None,
    "struct_in_an_array": None,
    "struct_in_memory_outside": DECLARED,
    "rows": None,
    "rows_outside": DECLARED,
    "number": None,
    "number_declares_another": "kernel at_number, ... argument 2 (float* y), 400 bytes at 0x",
    "encoder": None,
    "encoder_outside": PAST.replace("float", "const float"),
    "printed": "(0 bytes past the end of argument 1 (const char* x), 4 bytes at 0x",
    "host_memory": None,
    "many_parameters": "(0 bytes past the end of argument 70 (float* p69), 36 bytes at 0x",
    "ptx_without_types": "(0 bytes past the end of argument 1 (",
    "loop": None,
    "loop_of_new_arrays": None,
    "loop_outside": "(24 bytes past the end of argument 1 (float* x), 256 bytes at 0x",
}


@pytest.fixture(scope="module", params=["1", "0"], ids=["graphs", "no graphs"])
def left(request, python):
    """What each case left."""
    done = python(PROGRAM, CYRT_GRAPHS=request.param, CYRT_CHECK="0", CYRT_POOL="1")
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.parametrize("case", RESULTS)
def test_a_launch_uses_the_memory_that_it_names(left, case):
    if RESULTS[case] is None:
        assert left[case] == "none"
        return
    assert "block (0,0,0), thread (0,0,0)" in left[case]
    for part in RESULTS[case].split(" ... "):
        assert part in left[case]


def test_every_case_is_expected(left):
    assert left.keys() == RESULTS.keys()


@pytest.mark.parametrize(
    ("variables", "body", "expected"),
    [
        ("", "", False),
        (".visible .global .align 8 .u64 table;", "ld.global.u64 %r, [table];", True),
        (".global .align 8 .u64 table;", "", False),  # nothing uses it
        (".common .global .align 8 .u64 _ZN08NumbaEnv1ae;", "// _ZN08NumbaEnv1ae", False),
        (".const .align 16 .b8 view[16];", "ld.const.u64 %r, [view+8];", True),
        (".global .align 4 .u32 seen;", "atom.add.u32 %r, [seen], 1;", False),
        (".global .align 8 .f64 sum;", "ld.global.f64 %r, [sum];", False),
        (".global .align 1 .b8 $str[8] = {37};", "mov.u64 %r, $str;", False),
        (".global .u64 table;", "ld.global.u64 %r, [table];", True),
        (".global .attribute(.managed) .align 8 .u64 table;", "ld.global.u64 %r, [table];", True),
        (".global .align 8 .s64 table = 0;", "ld.global.u64 %r, [table];", True),
        (".global .v2 .u64 table;", "ld.global.u64 %r, [table];", True),
        (".global .align 16 .v4 .u32 table;", "ld.global.u64 %r, [table];", True),
        (".global .align 8 .b32 table[2];", "ld.global.u64 %r, [table];", True),
        (".global .u64 other, table;", "ld.global.u64 %r, [table];", True),
        (".const .align 4 .b32 factors[9];", "ld.const.f32 %r, [factors];", False),
    ],
)
def test_variables_that_may_hold_pointers(variables, body, expected):
    code = f".version 8.0\n.target sm_80\n{variables}\n.visible .entry k() {{ {body}\n}}\n"
    assert image.may_hold_pointers(code.encode()) is expected


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("const float* x", False),
        ("void* x", False),
        ("const unsigned char* x", False),
        ("unsigned long long* x", False),
        ("const float4* x", False),
        ("cuda::std::complex<float>* x", False),
        ("float** x", True),
        ("float* const* x", True),
        ("const View* x", True),
        ("View x", False),  # by value: it is opaque
        ("int x", False),
    ],
)
def test_parameters_that_may_point_to_pointers(declaration, expected):
    (parameter,) = from_declaration(f"void k({declaration})").parameters
    assert parameter.holds_pointers is expected


LANES = r'''
import re, sys, time
import numpy as np
import cyrt

SOURCE = """
extern "C" {
__global__ void between(const float* a, const float* b, const float* c, float* out, int arrays,
                        int rounds) {
    int lane = threadIdx.x;
    const float* x = lane % arrays == 0 ? a : lane % arrays == 1 ? b : c;
    float sum = 0;
    if (lane % 7)
        for (int i = 0; i < rounds; ++i) sum += x[(lane * 5 + i) & 63];
    out[blockIdx.x * 256 + lane] = sum;
}
__global__ void exchange(float* a, float* b, int end) {
    float* x = threadIdx.x & 1 ? a : b;
    float* y = threadIdx.x & 1 ? b : a;
    int i = threadIdx.x;
    float had = x[i];
    y[i + (i == 63 ? end : 0)] = had + 100;
}
}
"""
NUMBERS = SOURCE.replace("const float* a, const float* b,", "size_t a_, size_t b_,").replace(
    "    int lane", "    const float *a = (const float*)a_, *b = (const float*)b_;\n    int lane")
module, exempt = cyrt.Module(SOURCE), cyrt.Module(NUMBERS)
host = np.arange(192, dtype=np.float32).reshape(3, 64) ** 2
a, b, c = map(cyrt.asarray, host)
out = cyrt.zeros(16 * 256)


def run(kernel, arrays, rounds):
    kernel[16, 256](a, b, c, out, arrays, rounds)
    cyrt.synchronize()


def cost(kernel, *arguments):
    times = []
    for _ in range(7):
        begin = time.process_time()
        kernel[16, 256](*arguments, c, out, 2, 1000)
        cyrt.synchronize()
        times.append(time.process_time() - begin)
    return min(times)


for arrays in (1, 2, 3):
    run(module["between"], arrays, 5)
    lanes = np.arange(256)
    wanted = sum(host[lanes % arrays, (lanes * 5 + i) & 63] for i in range(5)) * (lanes % 7 != 0)
    assert (out.numpy().reshape(16, 256) == wanted).all(), arrays
if sys.argv[1:] == ["time"]:
    print(cost(module["between"], a, b) / cost(exempt["between"], a.ptr, b.ptr))
else:
    x, y = cyrt.arange(64, dtype="float32"), cyrt.arange(64, dtype="float32")
    module["exchange"][1, 64](x, y, 0)
    assert (x.numpy() == np.arange(64) + np.tile([100, 0], 32)).all()
    assert (y.numpy() == np.arange(64) + np.tile([0, 100], 32)).all()
    module["exchange"][1, 64](x, y, 1)
    try:
        cyrt.synchronize()
    except cyrt.CudaError as error:
        print(re.search(r"4 bytes .*", str(error))[0])
'''


def test_lanes_that_use_two_arrays_in_turns(python):
    done = python(LANES)
    assert done.stdout.startswith("4 bytes"), done.stderr
    assert "past the end of argument 2 (float* b)" in done.stdout


def test_what_lanes_cost_that_use_two_arrays_in_turns(python):
    """As much as without ranges: it was three times as much where each lane was searched for."""
    done = python("import sys; sys.argv = ['', 'time']\n" + LANES)
    assert float(done.stdout) < 1.7, (done.stdout, done.stderr)
