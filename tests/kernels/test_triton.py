"""Triton's kernels: stored ones, which need no Triton, and functions where it is installed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from outside import Library
from producers import Tensor

import cyrt
from cyrt.jit import compiler
from cyrt.jit.parameters import Signature
from cyrt.kernels import triton_code

FOLDER = Path(__file__).parent / "triton"
ALIGNED = [["tt.divisibility", 16]]
# What Triton compiled: metadata that is not usual, types of arguments, constants by place, and the
# places of arguments that are multiples of 16.
STORED = {
    "add": (
        {"num_ctas": 2, "shared": 0, "arch": 90},
        {"x": "*kfp32", "y": "*kfp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        {4: 512},
        (0, 1, 2),
    ),
    "softmax": (
        {"shared": 16, "arch": 80},
        {"out": "*fp32", "x": "*kfp32", "stride": "i32", "columns": "i32", "BLOCK": "constexpr"},
        {4: 256},
        (0, 1),
    ),
    "matmul": (
        {"shared": 4096, "arch": 80},
        dict.fromkeys("ab", "*kfp16")
        | {"c": "*fp32", "M": "i32", "N": "i32", "K": "i32", "am": "i32", "ak": "constexpr"}
        | {"bk": "i32", "bn": "constexpr", "cm": "i32", "cn": "constexpr"}
        | dict.fromkeys(("BM", "BN", "BK"), "constexpr"),
        {7: 1, 9: 1, 11: 1, 12: 32, 13: 32, 14: 32},
        (0, 1, 2, 6, 8, 10),
    ),
}


def compiled(name, **changes):
    """What ``triton.compile`` returned for a stored kernel."""
    metadata, types, constants, aligned = STORED[name]
    metadata = {"name": name, "num_warps": 4, "num_ctas": 1, "global_scratch_size": 0} | metadata
    metadata |= {"profile_scratch_size": 0, "launch_cooperative_grid": False} | changes
    metadata["target"] = SimpleNamespace(backend="cuda", arch=metadata.pop("arch"), warp_size=32)
    return SimpleNamespace(
        asm={"ptx": (FOLDER / f"{name}.ptx").read_text()},
        metadata=SimpleNamespace(**metadata),
        src=SimpleNamespace(
            signature=types,
            constants={(place,): value for place, value in constants.items()},
            attrs={(place,): ALIGNED for place in aligned},
        ),
    )


def skip_below(major):
    if cyrt.Device.current().compute_capability[0] < major:
        pytest.skip(f"code for compute capability {major}.0")


def three(n, rng):
    x, y = (rng.random(n, np.float32) for _ in range(2))
    return cyrt.asarray(x), cyrt.asarray(y), cyrt.zeros(n, dtype=cyrt.float32), x + y


def test_a_compiled_kernel_of_clusters_adds(rng):
    skip_below(9)
    add = cyrt.Kernel.from_triton(compiled("add"))
    assert add.signature == "void add(const float* x, const float* y, float* out, int n)"
    x, y, out, expected = three(3000, rng)
    add[lambda constants: -(-3000 // constants["BLOCK"])](x, y, out, 3000)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_a_softmax_over_rows_masks_the_columns(rng):
    softmax = cyrt.Kernel.from_triton(compiled("softmax"))
    x = rng.standard_normal((7, 181), np.float32)
    out = cyrt.zeros((7, 181), dtype=cyrt.float32)
    softmax[7](out, cyrt.asarray(x), 181, 181)
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), powers / powers.sum(1, keepdims=True), 1e-5, 1e-7)


def test_a_product_of_matrices_uses_tensor_cores(rng):
    matmul = cyrt.Kernel.from_triton(compiled("matmul"))
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((70, 80), (80, 96)))
    c = cyrt.zeros((70, 96), dtype=cyrt.float32)
    matmul[3, 3](cyrt.asarray(a), cyrt.asarray(b), c, 70, 96, 80, 80, 96, 96)
    np.testing.assert_allclose(c.numpy(), a.astype(np.float32) @ b.astype(np.float32), 1e-3, 1e-3)


def test_launches_are_recorded_and_replayed(batched, fresh_stream, rng):
    softmax = cyrt.Kernel.from_triton(compiled("softmax"))
    x = cyrt.asarray(rng.standard_normal((4, 100), np.float32))
    out = cyrt.empty((4, 100), dtype=cyrt.float32)
    cyrt.synchronize()
    before = cyrt.current_encoder().stats()
    with cyrt.batch():
        for _ in range(20):
            softmax[4](out, x, 100, 100)
            softmax[4](x, out, 100, 100)
    after = cyrt.current_encoder().stats()
    assert after["operations"] - before["operations"] == 40
    assert after["launches"] - before["launches"] < 5
    np.testing.assert_allclose(x.numpy().sum(1), 1, 1e-5)


def test_an_encoder_adds_them(batched, rng, forms):
    softmax = cyrt.Kernel.from_triton(compiled("softmax"))
    x = cyrt.asarray(rng.standard_normal((4, 100), np.float32))
    out, again = cyrt.zeros((4, 100), dtype=cyrt.float32), cyrt.zeros((4, 100), dtype=cyrt.float32)
    softmax[4](out, x, 100, 100)
    encoder = cyrt.CommandEncoder(cyrt.Stream())
    encoder.add_kernel(softmax, lambda constants: 4, None, (again, x, 100, 100), writes=[again])
    assert encoder.num_ops == 1
    np.testing.assert_array_equal(again.numpy(), out.numpy())
    # An argument that is 1 is a constant of the code.
    total = cyrt.Kernel.from_triton(stand_in(out="", n="", m=""), signature="*i32, i32, i32")
    number = cyrt.zeros(1, dtype=cyrt.int32)
    encoder.add_kernel(total, (1, 1), None, [number, 1, 5])
    assert int(number[0]) == 6
    for block, smem in ((128, 0), (None, 16)):
        with pytest.raises(TypeError, match="add_kernel: softmax: expected None as block, and no"):
            encoder.add_kernel(softmax, 4, block, (again, x, 100, 100), smem=smem)
    with pytest.raises(TypeError, match="expected 4 arguments, got 1"):
        encoder.add_kernel(softmax, 4, None, (x,))
    with pytest.raises(TypeError, match="softmax: args: expected a tuple"):
        encoder.add_kernel(softmax, 4, None, x)
    with pytest.raises(TypeError, match="block: expected an int or a tuple"):
        encoder.add_kernel(softmax.variants[0], 4, None, (again, x, 100, 100))
    assert encoder.num_ops == 0


def test_arguments_must_be_what_a_compiled_kernel_relies_on(rng):
    softmax = cyrt.Kernel.from_triton(compiled("softmax"))
    x = cyrt.zeros((2, 101), dtype=cyrt.float32)
    with pytest.raises(ValueError, match=r"argument 2 \(const float\* x\): expected an address"):
        softmax[1](x, x[:, 1:], 101, 100)
    matmul = cyrt.Kernel.from_triton(compiled("matmul"))
    half = cyrt.zeros((32, 32), dtype=cyrt.float16)
    with pytest.raises(ValueError, match=r"argument 7 \(int am\): expected a number .* got 33;"):
        matmul[1](half, half, x, 32, 32, 32, 33, 32, 32)


def test_launches_check_their_arguments(rng):
    softmax = cyrt.Kernel.from_triton(compiled("softmax"))
    x = cyrt.zeros((2, 100), dtype=cyrt.float32)
    with pytest.raises(TypeError, match="expected 4 arguments, got 2\n  void softmax"):
        softmax[1](x, x)
    with pytest.raises(TypeError, match=r"not BLOCK=: constants and num_warps are arguments of K"):
        softmax[1](x, x, 100, 100, BLOCK=3)
    with pytest.raises(TypeError, match=r"argument 1 .*expected an array of float32, got an array"):
        softmax[1](cyrt.zeros(100, dtype=cyrt.int32), x, 100, 100)
    with pytest.raises(ValueError, match="2147483648 is out of range"):
        softmax[1](x, x, 1 << 31, 100)
    with pytest.raises(ValueError, match=r"asks for 'block', which is none of the constants"):
        softmax[lambda constants: constants["block"]]
    with pytest.raises(TypeError, match=r"written kernel\[grid\]\(\*args\)"):
        softmax(x, x, 100, 100)
    buffer = cyrt.Buffer(800)
    buffer.free()
    with pytest.raises(ValueError, match="freed"):
        softmax[1](buffer, x, 100, 100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"global_scratch_size": 256}, r"needs 256 bytes of scratch memory a block \(global_scrat"),
        ({"profile_scratch_size": 8}, "profile_scratch_size.*compile it without instrumentation"),
        ({"tensordesc_meta": [{}]}, "tensor descriptors made on the host"),
        ({"num_ctas": 4}, "num_ctas is 4, and the code does not say so"),
        ({"arch": 75 + 125}, r"compiled for compute capability 20\.0, and the device has"),
    ],
)
def test_what_cyrt_cannot_launch_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        cyrt.Kernel.from_triton(compiled("softmax", **changes))


def test_code_for_another_architecture_is_refused():
    """Code from 9.0 on runs on one architecture, older PTX on later ones."""
    choose = triton_code._image
    both = SimpleNamespace(asm={"cubin": b"cubin", "ptx": "ptx"})
    assert choose(both, "k", 90, (9, 0), False) == b"cubin"
    assert choose(both, "k", 80, (8, 6), False) == b"cubin"
    assert choose(both, "k", 80, (9, 0), False) == b"ptx"
    assert choose(both, "k", 80, (9, 0), True) == b"ptx"
    for arch, own in ((90, (10, 0)), (100, (9, 0)), (86, (8, 0)), (120, (12, 1))):
        with pytest.raises(ValueError, match=rf"GPUTarget\('cuda', {own[0] * 10 + own[1]}, 32\)"):
            choose(both, "k", arch, own, False)
    with pytest.raises(ValueError, match="the emulated device runs PTX only"):
        choose(SimpleNamespace(asm={"cubin": b""}), "k", 90, (9, 0), True)


def test_a_kernel_without_its_metadata_is_refused():
    whole = compiled("softmax")
    with pytest.raises(TypeError, match="has no metadata at all; give the object that"):
        cyrt.Kernel.from_triton(SimpleNamespace(asm=whole.asm))
    for name in ("name", "shared", "num_warps", "target"):
        part = compiled("softmax")
        delattr(part.metadata, name)
        with pytest.raises(TypeError, match=f"has no metadata {name}; give"):
            cyrt.Kernel.from_triton(part)
    del whole.src
    with pytest.raises(TypeError, match=r"does not say what its arguments are; give signature="):
        cyrt.Kernel.from_triton(whole)
    softmax = cyrt.Kernel.from_triton(whole, signature="*fp32, *kfp32, i32, i32")
    assert softmax.signature == "void softmax(float* arg0, const float* arg1, int arg2, int arg3)"


@pytest.mark.parametrize("given", [3, "add", len, SimpleNamespace(fn=0, configs=[])])
def test_only_triton_s_own_objects_are_taken(given):
    with pytest.raises(TypeError, match="Kernel.from_triton: (expected a func|an autotun)"):
        cyrt.Kernel.from_triton(given, signature="i32")


def stand_in(**parameters):
    """A function with ``@triton.jit``, whose parameters have these properties."""

    def parameter(name, traits):
        return SimpleNamespace(
            name=name,
            is_constexpr="constexpr" in traits,
            has_default="default" in traits,
            default=7,
            do_not_specialize="plain" in traits,
            do_not_specialize_on_alignment="unaligned" in traits,
        )

    return SimpleNamespace(
        __name__="k",
        arg_names=list(parameters),
        params=[parameter(name, traits) for name, traits in parameters.items()],
    )


@pytest.fixture
def forms(monkeypatch):
    """The forms that are compiled, of a kernel that writes its arguments' sum to ``out``."""
    found = []

    def code_for(self, forms, capability, emulated):
        found.append(forms)
        left = [p for p, form in zip(self.parameters, forms, strict=True) if not form & 2]
        numbers = [p.name for p in left if p.code == "i32"]
        pointers = any(p.code == "pointer" for p in left)
        text = ", ".join([*map(str, left), "void*", "void*"])
        ones = sum(form & 2 for form in forms[1:]) // 2
        store = f"if (!threadIdx.x) *out = {' + '.join([*numbers, str(ones)])};" * pointers
        image = compiler.compile(
            f'extern "C" __global__ void k({text}) {{ {store} }}', arch="compute_75"
        )
        hidden = (triton_code.pointer("void", const=False),) * 2
        return triton_code.TritonCode(
            image.code, Signature("k", (*left, *hidden)), 2, 64, 0, 1, False
        )

    monkeypatch.setattr(triton_code.Function, "code_for", code_for)
    return found


def test_a_variant_is_chosen_by_alignment_and_value(forms):
    function = stand_in(out="", n="", m="plain", l="unaligned", B="constexpr default")
    kernel = cyrt.Kernel.from_triton(function, signature="*i32, i32, i32, i32")
    out = cyrt.zeros(64, dtype=cyrt.int32)
    assert (forms, kernel.variants) == ([], [])

    def run(*args):
        kernel[1](*args)
        return int(args[0][0])

    for _ in range(2):  # the second time, all are found
        assert run(out, 3, 1, 5) == 9
        assert run(out, 32, 16, 16) == 64
        assert run(out[1:], 3, 4, 5) == 12
        assert run(out, 1, 1, 1) == 3
        assert run(out, np.int64(-16), True, 5) == -10
        assert run(out, 0, 7, 5) == 12
    assert [tuple(each) for each in forms] == [
        (1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 0, 0), (1, 2, 0, 2),
    ]  # fmt: skip
    assert len(kernel.variants) == 4
    kernel[1](None, 3, 4, 5)  # a null pointer is a constant, too
    assert tuple(forms[-1]) == (3, 0, 0, 0)
    assert kernel[1](out, 3, 4, 5, writes=[out]) is None


def test_the_forms_of_many_arguments_are_told_apart(forms):
    names = [f"n{i}" for i in range(40)]
    kernel = cyrt.Kernel.from_triton(
        stand_in(out="", **dict.fromkeys(names, "")), signature="*i32" + ", i32" * 40
    )
    out = cyrt.zeros(4, dtype=cyrt.int32)
    for place in (0, 30, 31, 39):
        numbers = [2] * 40
        numbers[place] = 1
        kernel[1](out, *numbers)
        assert int(out[0]) == 79
        assert forms[-1][place + 1] == 2
    assert len(forms) == 4
    many = {f"n{i}": "" for i in range(65)}
    with pytest.raises(ValueError, match="65 arguments, at most 64"):
        cyrt.Kernel.from_triton(stand_in(**many), signature=", ".join(["i32"] * 65))


def test_other_libraries_arrays_are_aligned_by_their_addresses(forms):
    kernel = cyrt.Kernel.from_triton(stand_in(out="", n=""), signature="*i32, i32")
    out = cyrt.zeros(8, dtype=cyrt.int32)

    class Foreign:
        def __init__(self, array):
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    kernel[1](Foreign(out), 5)
    kernel[1](Foreign(out[1:]), 6)
    assert out.numpy()[:2].tolist() == [5, 6]
    assert [tuple(each) for each in forms] == [(1, 0), (0, 0)]


def test_tensors_are_described_once_a_launch(forms):
    """Their addresses decide on the variant, and are passed to it."""
    kernel = cyrt.Kernel.from_triton(stand_in(out="", x="", n=""), signature="*i32, *i32, i32")
    library = Library()
    out, x = Tensor(library, 8, "i4"), Tensor(library, 8, "i4")
    for batch in (contextlib.nullcontext, cyrt.batch):
        kernel[1](out, x, 5)
        described, asked = Tensor.described, Tensor.asked
        with batch():
            kernel[1](out, x, 6)
        assert (Tensor.described, Tensor.asked) == (described + 2, asked + 1)
        assert out.values()[0] == 6
    x.fields["data"] += 4
    out.fields["data"] += 4
    kernel[1](out, x, 7)
    assert out.values()[:2].tolist() == [6, 7]
    own = cyrt.zeros(8, dtype=cyrt.int32)
    kernel[1](own, out, 8)
    assert int(own[0]) == 8
    kernel[1](out, None, 9)
    assert out.values()[1] == 10  # the stand-in counts constants
    assert [tuple(each) for each in forms] == [(1, 1, 0), (0, 0, 0), (1, 0, 0), (0, 3, 0)]
    out.requires_grad = True
    with pytest.raises(ValueError, match=r"argument 1 .*requires a gradient"):
        kernel[1](out, x, 5)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({}, TypeError, "expected signature=, Triton's types of x, n, such as"),
        ({"signature": "*fp32"}, ValueError, "expected 2 types, of x, n .*got 1"),
        ({"signature": {"x": "*fp32"}}, ValueError, "the types of x, n .*got those of x"),
        ({"signature": 3}, TypeError, "Triton's types by name"),
        ({"signature": "*fp33, i32"}, TypeError, r"x: '\*fp33' is not a type of an argument"),
        ({"signature": "tensordesc<fp16[8]>, i32"}, TypeError, "tensor descriptors made on the h"),
        ({"signature": {"x": ("i32",), "n": "i32"}}, TypeError, "tuples cannot be passed"),
        ({"signature": "*fp32, i32", "constants": {"C": 3}}, ValueError, "has no parameters C"),
        ({"signature": "*fp32, i32", "constants": 3}, TypeError, "a mapping by name, got int"),
        ({"signature": "*fp32, i32", "num_warps": 0}, ValueError, "num_warps: expected a number"),
    ],
)
def test_wrong_descriptions_are_refused(keywords, error, message):
    function = stand_in(x="", n="", B="constexpr default")
    with pytest.raises(error, match=message):
        cyrt.Kernel.from_triton(function, **keywords)
    with pytest.raises(ValueError, match=r"B is a constexpr without a value: constants=\{'B'"):
        cyrt.Kernel.from_triton(stand_in(B="constexpr"), signature="")


def test_types_have_all_of_triton_s_names():
    names = {
        "*fp32": "float*", "*kfp32": "const float*", "const *fp16": "const __half*",
        "tl.int32": "int", "float64": "double", "*bf16": "__nv_bfloat16*", "bool": "bool",
        "*u8": "unsigned char*", "*fp8e4nv": "unsigned char*", "uint64": "unsigned long long",
        "bfloat16*": "__nv_bfloat16*", "**fp32": "void**", "i1": "bool",
    }  # fmt: skip
    found = {name: str(triton_code._parameter("k", "", name)) for name in names}
    assert found == names


def triton_functions():
    pytest.importorskip("triton", reason="Triton is not installed")
    import triton_functions

    return triton_functions


def test_triton_compiles_a_function_at_its_launches(rng):
    functions = triton_functions()
    add = cyrt.Kernel.from_triton(
        functions.add, signature="*kfp32, *kfp32, *fp32, i32", constants={"BLOCK": 256}
    )
    for n in (1, 96, 1000, 1024):
        x, y, out, expected = three(n, rng)
        add[lambda constants, n=n: (-(-n // constants["BLOCK"]),)](x, y, out, n)
        np.testing.assert_array_equal(out.numpy(), expected)
    x, y, out, expected = three(99, rng)
    add[1](x[1:], y[1:], out[1:], 98)
    np.testing.assert_array_equal(out.numpy()[1:], expected[1:])
    assert len(add.variants) == 4


def test_triton_s_product_takes_strides(rng):
    functions = triton_functions()
    types = dict.fromkeys("ab", "*kfp16") | {"c": "*fp32"}
    types |= dict.fromkeys(("M", "N", "K", "am", "ak", "bk", "bn", "cm", "cn"), "i32")
    matmul = cyrt.Kernel.from_triton(
        functions.matmul, signature=types, constants={"BM": 32, "BN": 32, "BK": 32}, num_stages=2
    )
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((70, 80), (96, 80)))
    c = cyrt.zeros((70, 96), dtype=cyrt.float32)
    matmul[3, 3](cyrt.asarray(a), cyrt.asarray(b).T, c, 70, 96, 80, 80, 1, 1, 80, 96, 1)
    np.testing.assert_allclose(c.numpy(), a.astype(np.float32) @ b.T.astype(np.float32), 1e-3, 1e-3)


@pytest.mark.parametrize("num_ctas", [1, 2])
def test_triton_s_scalars_are_passed_by_value(num_ctas):
    functions = triton_functions()
    if num_ctas > 1:
        skip_below(9)
    fill = cyrt.Kernel.from_triton(
        functions.fill, signature="*fp64, fp32, i64, fp64", constants={"BLOCK": 128},
        num_ctas=num_ctas,
    )  # fmt: skip
    out = cyrt.zeros(300, dtype=cyrt.float64)
    fill[2](out, 1.5, 200, 3.0)
    np.testing.assert_array_equal(out.numpy(), [4.5] * 200 + [0] * 100)


@pytest.mark.gpu
def test_triton_s_functions_run_on_tensors():
    functions = triton_functions()
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    add = cyrt.Kernel.from_triton(
        functions.add, signature="*kfp32, *kfp32, *fp32, i32", constants={"BLOCK": 1024}
    )
    x, y = (torch.rand(5000, device="cuda") for _ in range(2))
    out, again = torch.zeros_like(x), torch.zeros_like(x)
    add[5](x, y, out, 5000)
    assert torch.equal(out, x + y)
    with cyrt.batch():
        add[5](x, y, again, 5000)
    assert torch.equal(again, out)
    mine = functions.add.warmup(x, y, out, 5000, BLOCK=1024, grid=(5,))
    out.zero_()
    cyrt.Kernel.from_triton(mine)[5](x, y, out, 5000)
    assert torch.equal(out, again)
