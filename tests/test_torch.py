"""Kernels as operators of PyTorch."""

from __future__ import annotations

import threading
import time

import pytest

import cyrt
import cyrt.torch

torch = pytest.importorskip("torch")
SOURCE = r"""
extern "C" {
__global__ void scaled(const float* x, float* y, float a, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
struct Pair { int a, b; };
__global__ void structs(float* x, Pair p) {}
}
"""


def numpy_launch(kernel, grid, block, values):
    """The kernel `scaled`, on the CPU."""
    x, y, a, n = values
    assert not x.requires_grad
    assert grid == (n + 255) // 256
    assert block == 256
    y.view(-1)[:n] = a * x.reshape(-1)[:n]


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(SOURCE)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """PyTorch's device; on the CPU only the launch is replaced."""
    if request.param == "cpu":
        monkeypatch.setattr(cyrt.torch, "_launch", numpy_launch)
    elif not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    return request.param


count = iter(range(1000))


def scaled_op(module, **more):
    def backward(ctx, grad):
        return operator(grad.contiguous(), ctx.factor), None

    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    operator = cyrt.torch.custom_op(
        module["scaled"],
        f"cyrt_tests::scaled{next(count)}",
        grid=lambda x, a: (x.numel() + 255) // 256,
        block=256,
        computed={"y": lambda x, a: torch.empty_like(x), "n": lambda x, a: x.numel()},
        **({"backward": backward, "setup_context": setup_context} | more),
    )
    return operator


def test_operator_returns_what_is_computed(module, device):
    operator = scaled_op(module)
    x = torch.arange(600.0, device=device).reshape(3, 200)
    y = operator(x, 2.0)
    assert y.shape == x.shape
    assert torch.equal(y, 2 * x)
    torch.library.opcheck(operator, (x, 3.0), test_utils=("test_schema", "test_faketensor"))


def test_autograd(module, device):
    operator = scaled_op(module)
    x = torch.ones(10, device=device, requires_grad=True)
    (operator(x, 4.0) * torch.arange(10.0, device=device)).sum().backward()
    assert torch.equal(x.grad, 4 * torch.arange(10.0, device=device))
    torch.library.opcheck(
        operator, (x, 3.0), test_utils=("test_schema", "test_autograd_registration")
    )


def test_compiled(module, device):
    operator = scaled_op(module)
    compiled = torch.compile(
        lambda x: operator(x + 1, 2.0) - 1, backend="aot_eager", fullgraph=True
    )
    x = torch.ones(300, device=device, requires_grad=True)
    y = compiled(x)
    assert torch.equal(y, torch.full_like(x, 3))
    y.sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))


def test_mutated_argument(module, device):
    operator = cyrt.torch.custom_op(
        module["scaled"],
        f"cyrt_tests::into{next(count)}",
        grid=lambda x, y, a, n: (n + 255) // 256,
        block=256,
    )
    x, y = torch.ones(300, device=device), torch.zeros(300, device=device)
    assert operator(x, y, 5.0, 300) is None
    assert torch.equal(y, 5 * x)

    def program(x):
        out = torch.zeros_like(x)
        operator(x, out, 2.0, x.numel())
        return out + 1

    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), torch.full_like(x, 3))
    torch.library.opcheck(operator, (x, y, 3.0, 300), test_utils=("test_schema",))


@pytest.mark.gpu
@pytest.mark.parametrize("own", [False, True])
def test_captured_by_torch(module, own):
    """Kernels between PyTorch's operations, on its tensors and on an array that only the graph
    keeps."""
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    n = 1000
    x, y = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda")
    between = [cyrt.zeros(n) if own else torch.zeros(n, device="cuda")]

    def step():
        x.add_(1)
        module["scaled"][4, 256](x, between[0], 2.0, n)
        module["scaled"][4, 256](between[0], y, 3.0, n)
        return y + 1

    step()
    cyrt.commit()
    torch.cuda.synchronize()
    x.fill_(0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = step()
    if own:
        between.clear()  # the graph alone has it now
    others = [cyrt.full(n, 7.0) for _ in range(20)]
    for i in range(1, 5):
        graph.replay()
        assert torch.equal(z, torch.full_like(z, 6 * i + 1))
    assert all((each.numpy() == 7).all() for each in others)
    graph.reset()


@pytest.mark.gpu
def test_other_threads_do_not_end_torchs_capture(module):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    n = 1000
    x, y = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda")
    module["scaled"][4, 256](x, y, 2.0, n)
    torch.cuda.synchronize()
    stop, errors = threading.Event(), []

    def work():
        try:
            while not stop.is_set():
                values = cyrt.zeros(3_000_000) + 1
                cyrt.commit()
                assert values.numpy()[-1] == 1
                cyrt.Module(f"// {time.perf_counter()}\n" + SOURCE)["scaled"]
                del values
                cyrt.synchronize()
                cyrt.trim_memory()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for i in range(10):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(20):
                    module["scaled"][4, 256](x, y, float(i), n)
                    time.sleep(0.005)
            graph.replay()
            assert torch.equal(y, torch.full_like(y, i))
    finally:
        stop.set()
        thread.join()
    assert not errors


@pytest.mark.gpu
@pytest.mark.usefixtures("batched")
def test_what_torchs_graph_would_not_contain_is_refused(module):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    n = 1000
    x = torch.ones(n, device="cuda")
    own = cyrt.zeros(n)
    cyrt.synchronize()
    graph = torch.cuda.CUDAGraph()
    own += 1  # recorded
    with torch.cuda.graph(graph):
        x.add_(1)
        with pytest.raises(RuntimeError, match=r"cyrt\.commit\(\) before the capture"):
            module["scaled"][4, 256](own, x, 2.0, n)
        with pytest.raises(RuntimeError, match="capture"):
            cyrt.asarray(x)
    graph.replay()
    assert torch.equal(x, torch.full_like(x, 2))
    assert (own.numpy() == 1).all()


def test_fake_tensors_launch_nothing(module):
    from torch._subclasses.fake_tensor import FakeTensorMode

    operator = scaled_op(module)
    with FakeTensorMode():
        y = operator(torch.empty(5, 7), 2.0)
    assert tuple(y.shape) == (5, 7)


def test_tensors_on_the_cpu_are_refused(module):
    with pytest.raises(TypeError, match="which a CUDA device cannot reach"):
        scaled_op(module)(torch.ones(4), 2.0)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"computed": {"z": len}}, ValueError, r"scaled has no parameter 'z'"),
        ({"computed": {"x": len}}, ValueError, r"scaled does not write const float\* x"),
        ({"kernel": "structs"}, TypeError, "cannot have the parameter .*Pair p"),
        ({"kernel": None}, TypeError, "kernel: expected a Kernel, got NoneType"),
    ],
)
def test_refused(module, arguments, error, text):
    name = arguments.pop("kernel", "scaled")
    with pytest.raises(error, match=text):
        cyrt.torch.custom_op(
            name and module[name], f"cyrt_tests::bad{next(count)}", grid=1, block=1, **arguments
        )


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.int64, torch.bool])
def test_tensors_on_the_host_are_copied(kind):
    for convert in (cyrt.asarray, cyrt.from_dlpack):
        x = convert(torch.tensor([[1, 0], [0, 1]]).to(kind).T)
        assert str(kind) == f"torch.{x.dtype}"
        assert (x != 0).tolist() == [[True, False], [False, True]]


def test_tensors_that_are_not_copied():
    for tensor in (torch.ones(3, device="meta"), torch.eye(3).to_sparse()):
        with pytest.raises(ValueError, match=r"\Amemory: Tensor does not hand it out: [^\n]+\Z"):
            cyrt.asarray(tensor)
    with pytest.raises(TypeError, match="Tensor: its element type"):
        cyrt.asarray(torch.ones(3).to(torch.float8_e4m3fn))
    with pytest.raises(TypeError, match=r"element of torch.Tensor, .*cyrt.stack\(\)"):
        cyrt.asarray([torch.ones(2), torch.ones(2)])


def test_a_tensor_on_the_host_is_no_operand():
    x, tensor = cyrt.ones(3), torch.ones(3)
    for call in (
        lambda: x == tensor,
        lambda: tensor != x,
        lambda: tensor + x,
        lambda: x @ tensor,
        lambda: tensor @ x,
        lambda: cyrt.exp(tensor),
    ):
        with pytest.raises(TypeError, match=r"got torch.Tensor; cyrt.asarray\(\) copies it to"):
            call()
    with pytest.raises(TypeError, match="sqrt: out: .*, which is on the host; out= takes"):
        cyrt.sqrt(x, out=tensor)
