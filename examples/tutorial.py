"""The six lessons of docs/tutorial in one file.

It is made from them: ``python tests/docs/tutorial_file.py`` writes it.
"""

from __future__ import annotations

import os
import tempfile
import time

import numpy as np

import cyrt

# docs/tutorial/1-arrays.md
print("\n1 Arrays")

x = cyrt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(x.shape, x.dtype, x.T.shape)
print(x + 10)
print(x.sum(axis=0))

host = np.arange(6, dtype=np.int32).reshape(2, 3)
y = cyrt.asarray(host)
print(y.dtype, (y * y).numpy().tolist())

print((y + 0.5).dtype, (x + y).dtype, (y / 2).dtype)
try:
    print(x + host)
except TypeError as error:
    print(error)

row = x[0]
row += 100
print(x)
print(x[x > 50])

key, other = cyrt.random.split(cyrt.random.key(7))
a = cyrt.random.normal(shape=(1000,), key=key)
b = cyrt.random.normal(shape=(1000,), key=key)
print(bool((a == b).all()), round(a.std().item(), 1))

# docs/tutorial/2-when-it-runs.md
print("\n2 When does it run?")

x = cyrt.ones(1000)
begin = time.perf_counter()
for _ in range(100):
    x = x * 0.5 + 1.0
recorded = time.perf_counter() - begin
value = x[0].item()  # here it waits
print(value, recorded < 1)

y = cyrt.zeros(1000)
for step in range(5):
    y += step
    cyrt.commit()
cyrt.synchronize()
print(y[0].item())

encoder = cyrt.current_encoder()
before = encoder.stats()
z = cyrt.zeros(1000)
for _ in range(20):
    z = cyrt.sin(z) + 1.0
    cyrt.commit()
after = encoder.stats()
print("operations:", after["operations"] - before["operations"])
print("most batches found their graph:", after["hits"] - before["hits"] > 10)

begin, end = cyrt.Event(), cyrt.Event()
begin.record()
for _ in range(100):
    z = cyrt.sin(z) + 1.0
end.record()
print(begin.elapsed_time(end) > 0, "milliseconds")

# docs/tutorial/3-kernels.md
print("\n3 A kernel of your own")

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
saxpy = cyrt.Kernel(SOURCE, "saxpy")
print(saxpy.signature)

n = 1000
x, y = cyrt.arange(n, dtype="float32"), cyrt.ones(n)
saxpy[(n + 255) // 256, 256](2.0, x, y, n)
print(y[:4])

saxpy.for_each(n, 0.5, x, y, n)
print(y[:4])

try:
    saxpy.for_each(n, 2.0, x.astype("float64"), y, n)
except TypeError as error:
    print(error)

MODULE = r"""
__device__ int calls;
template <typename T> __global__ void fill(T* x, T value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) atomicAdd(&calls, 1);
    if (i < n) x[i] = value;
}
"""
module = cyrt.Module(MODULE, ["fill<float>", "fill<int>"])
numbers = cyrt.empty(n, dtype="int32")
module["fill<float>"].for_each(n, y, 7.0, n)
module["fill<int>"].for_each(n, numbers, 7, n)

calls = np.empty(1, np.int32)
module.get_global("calls").copy_to(calls)
print(y[0].item(), numbers[0].item(), calls[0])

# docs/tutorial/4-memory.md
print("\n4 Memory")

host = np.arange(4, dtype=np.float32)
buffer = cyrt.Buffer(host.nbytes)
buffer.copy_from(host)  # sizes must be equal, in bytes
back = np.empty_like(host)
buffer[:8].copy_to(back[:2])  # a slice is a view of bytes
print(back[:2])

x = cyrt.asarray(buffer, dtype="float32")  # the bytes as elements
x *= 10
buffer.copy_to(back)
print(back)
x.buffer[4:8].fill(0)  # the elements as bytes: the second one
print(x)

stats = cyrt.memory_stats()
print(sorted(stats))
del buffer

pinned = cyrt.PinnedBuffer(16)
view = np.frombuffer(pinned, np.float32)
view[:] = [1, 2, 3, 4]
y = cyrt.empty(4)
pinned.copy_to(y)
print(y)

# docs/tutorial/5-streams.md
print("\n5 Streams")

side = cyrt.Stream()
x = cyrt.ones(1000)
with side:
    y = x * 2  # on `side`, after `ones` on this thread's stream, since it reads x
z = y + 1  # on this thread's stream again, after the product on `side`
print(z[0].item())

done = cyrt.Event()
with side:
    w = cyrt.cumsum(x)
    done.record()
done.synchronize()
print(done.done, w[-1].item())

parts = [cyrt.PinnedBuffer(4000) for _ in range(4)]
values = [np.frombuffer(part, np.float32) for part in parts]
for i, each in enumerate(values):
    each[:] = i
streams = [cyrt.Stream(), cyrt.Stream()]
slots = [cyrt.Buffer(4000), cyrt.Buffer(4000)]
double = cyrt.Kernel(
    r"""extern "C" __global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}""",
    "twice",
)
for i, part in enumerate(parts):
    with streams[i % 2]:
        slots[i % 2].copy_from(part, blocking=False)  # while the kernel of part i - 1 runs
        double.for_each(1000, slots[i % 2], 1000)
        slots[i % 2].copy_to(part, blocking=False)
cyrt.synchronize()  # now the host may look
print([int(each[0]) for each in values])

total = cyrt.zeros(4)
quarter = cyrt.Kernel(
    r"""extern "C" __global__ void quarter(float* total, int which) { total[which] = which; }""",
    "quarter",
)
with cyrt.CommandEncoder() as encoder:
    with encoder.concurrent():  # in any order, though all of them write `total`
        for i in range(4):
            encoder.add_kernel(quarter, 1, 1, (total, i))
    encoder.add_completed_handler(lambda: None)  # called when the batch has finished
print(total)

# docs/tutorial/6-training.md
print("\n6 Training")

key, other = cyrt.random.split(cyrt.random.key(0))
x = cyrt.random.normal(shape=(200, 5), key=key)
truth = cyrt.asarray([1.0, -2.0, 0.5, 0.0, 3.0])
y = cyrt.astype(x @ truth > 0, "float32")


def loss(w):
    """Mean cross entropy: log(1 + exp(z)) - y z."""
    z = x @ w
    return (cyrt.nn.softplus(z) - y * z).mean()


gradient = cyrt.grad(loss)
w = cyrt.zeros(5)
first = loss(w).item()
for _ in range(100):
    w = w - 1.0 * gradient(w)
print(f"{first:.3f}", loss(w).item() < 0.2)

hidden = 16
params = {
    "in": cyrt.random.normal(shape=(hidden, 5), key=other) / 5**0.5,
    "bias": cyrt.zeros(hidden),
    "out": cyrt.zeros(hidden),
}


def network_loss(params):
    h = cyrt.nn.linear(x, params["in"], params["bias"], activation="gelu")
    z = h @ params["out"]
    return cyrt.nn.binary_cross_entropy(z, y, with_logits=True)


step = cyrt.value_and_grad(network_loss)
optimizer = cyrt.optim.adam(cyrt.optim.cosine(0.03, 100))
state = optimizer.init(params)
for _ in range(100):
    value, grads = step(params)
    params, state = optimizer.update(grads, state, params)
print(value.item() < 0.1, state["float32"].step[0].item())

rng = cyrt.random.default_rng(0)
now = {"params": params, "state": state, "rng": rng}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "step_100.npz")
    cyrt.save_checkpoint(path, now)
    then = cyrt.load_checkpoint(path, like=now)
    names = sorted(cyrt.load(path))
print(bool((then["rng"].normal(size=3) == rng.normal(size=3)).all()))
print(names)
