"""The stand-in for cuSOLVER: the functions that cyrt calls. Each waits for the stream, as some of
cuSOLVER's do, and computes by NumPy on the host."""

from __future__ import annotations

import ctypes
import gc
import itertools
import threading
from ctypes import CFUNCTYPE, c_int, c_size_t, c_uint64, c_void_p, cast

import numpy as np
from outside import Library as Driver

from cyrt.libs import cusolver
from cyrt.libs.library import DATA_TYPES

WORDS = 24  # at least the arguments of any function
Function = CFUNCTYPE(c_int, *[c_uint64] * WORDS)
TYPES = {number: np.dtype(name) for name, number in DATA_TYPES.items() if name != "bfloat16"}
Q_TYPES = {"S": "float32", "D": "float64", "C": "complex64", "Z": "complex128"}
# Where the addresses of the sizes are among a query's arguments.
QUERIES = {"Xpotrf": 8, "Xgetrf": 8, "Xgeqrf": 10, "Xsyevd": 11, "Xgesvd": 18, "Xgeev": 17}
ANY_PIVOT = 10**9  # the pivot of a column of NaN
INTERNAL_ERROR = 7


class Standin(cusolver.CuSolver):
    """The library.

    `status`: what the calls of functions end with, by name; `workspace` and `host`: the bytes that
    they need; `calls`: the names of those that ran; `threads`: those that used each handle;
    `absent`: functions that it does not have; `errors`: exceptions of this stand-in.
    """

    def __init__(self):
        self.path, self.version, self.dotted = "stand-in", 12000, "12.0.0"
        self.functions = {"cusolverDnCreateParams": self.create_params}
        self.parameters_made = 0
        self.numbers = itertools.count(1)
        self.known = {}
        self.streams = {}  # the handles', which live as long as the context
        self.driver = Driver()
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        self.busy, self.threads = set(), {}
        self.status, self.absent, self.calls, self.errors = {}, set(), [], []
        self.workspace = self.host = 0

    def create_params(self, made):
        self.parameters_made += 1
        made._obj.value = 77
        return 0

    def address(self, name):
        short = name.removeprefix("cusolverDn")
        if short in self.absent:
            raise cusolver.Unsupported(f"the stand-in has no {name}")
        if name not in self.known:
            self.known[name] = Function(lambda *words: self.run(short, words))
        return cast(self.known[name], c_void_p).value

    def run(self, name, words):
        """Call a method. No finalizer runs meanwhile: the stream's turn is this thread's."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            if name == "Create":
                number = next(self.numbers)
                self.streams[number] = None
                c_uint64.from_address(words[0]).value = number
                return 0
            if name == "SetStream":
                self.streams[words[0]] = words[1]
                return self.status.get(name, 0)
            if name == "Destroy":
                del self.streams[words[0]]
                return 0
            return self.run_for(name, words)
        except BaseException as error:
            self.errors.append(error)
            return INTERNAL_ERROR
        finally:
            if collecting:
                gc.enable()

    def run_for(self, name, words):
        handle = words[0]
        with self.lock:
            assert handle not in self.busy, "two threads use a handle"
            self.busy.add(handle)
        try:
            self.threads.setdefault(handle, set()).add(threading.get_ident())
            status = self.status.get(name, 0)
            if name.endswith("_bufferSize"):
                return status or self.tell(name, words)
            if status == 0:
                self.compute(name, words)
                self.calls.append(name)
            return status
        finally:
            self.busy.remove(handle)

    def tell(self, name, words):
        if name[0] == "X":
            assert words[1] == 77
            at = QUERIES[name.removesuffix("_bufferSize")]
            c_size_t.from_address(words[at]).value = self.workspace
            c_size_t.from_address(words[at + 1]).value = self.host
            return 0
        c_int.from_address(words[7]).value = self.workspace // np.dtype(Q_TYPES[name[0]]).itemsize
        return 0

    # -- memory ------------------------------------------------------------------------------------

    def read(self, address, dtype, count):
        out = np.empty(count, dtype)
        self.driver(
            "cuMemcpyDtoH_v2", c_void_p(out.ctypes.data), c_uint64(address), c_size_t(out.nbytes)
        )
        return out

    def write(self, address, array):
        array = np.ascontiguousarray(array)
        self.driver(
            "cuMemcpyHtoD_v2", c_uint64(address), c_void_p(array.ctypes.data),
            c_size_t(array.nbytes),
        )  # fmt: skip

    def matrix(self, address, dtype, rows, columns, step):
        """A matrix that is stored by columns."""
        assert step >= rows
        assert rows == step, "cyrt's matrices have no gaps"
        return self.read(address, dtype, rows * columns).reshape(columns, rows).T

    # -- functions ---------------------------------------------------------------------------------

    def compute(self, name, words):
        stream = c_void_p(self.streams[words[0]])
        with self.driver:
            self.driver("cuStreamSynchronize", stream)
            if name[0] == "X" and name != "Xgetrs":
                assert words[1] == 77
                getattr(self, name)(*words[2:])
            elif name == "Xgetrs":
                self.Xgetrs(*words[2:])
            else:
                self.orgqr(np.dtype(Q_TYPES[name[0]]), *words[1:])

    def take_device(self, address, size):
        """Write the workspace on the device."""
        assert size == self.workspace
        assert bool(address) == bool(size)
        if size:
            self.write(address, np.full(size, 0xEE, np.uint8))

    def take(self, device, size, host, host_size):
        """Write the workspaces."""
        self.take_device(device, size)
        assert host_size == self.host
        assert bool(host) == bool(host_size)
        if host_size:
            ctypes.memset(host, 0xEE, host_size)

    def end(self, info, value):
        self.write(info, np.array([value], np.int32))

    def Xpotrf(self, uplo, n, dtype, a, step, compute, work, size, host, host_size, info, *_):
        assert dtype == compute
        self.take(work, size, host, host_size)
        stored = self.matrix(a, TYPES[dtype], n, n, step)
        x = np.triu(stored, 1) if uplo == cusolver.UPPER else np.tril(stored, -1).conj().T
        x = x + x.conj().T + np.diag(np.diag(stored).real)
        failed = 0
        factor = np.full_like(x, np.nan)
        if np.isfinite(x).all():
            for k in range(1, n + 1):
                try:
                    factor[:k, :k] = np.linalg.cholesky(x[:k, :k]).conj().T
                except np.linalg.LinAlgError:
                    failed = k
                    break
        # The other triangle stays as it is.
        found = np.triu(factor) + np.tril(stored, -1)
        if uplo == cusolver.LOWER:
            found = np.tril(factor.conj().T) + np.triu(stored, 1)
        self.write(a, found.T)
        self.end(info, failed)

    def Xgetrf(self, m, n, dtype, a, step, pivots, compute, work, size, host, host_size, info, *_):
        assert dtype == compute
        self.take(work, size, host, host_size)
        x = self.matrix(a, TYPES[dtype], m, n, step).copy()
        places, failed = np.empty(min(m, n), np.int64), 0
        for j in range(min(m, n)):
            if np.isnan(x[j:, j]).any():
                places[j], failed = ANY_PIVOT, failed or j + 1
                continue
            at = j + np.abs(x[j:, j]).argmax()
            places[j] = at + 1
            x[[j, at]] = x[[at, j]]
            if x[j, j] == 0:
                failed = failed or j + 1
                continue
            x[j + 1 :, j] /= x[j, j]
            x[j + 1 :, j + 1 :] -= np.outer(x[j + 1 :, j], x[j, j + 1 :])
        self.write(a, x.T)
        self.write(pivots, places)
        self.end(info, failed)

    def Xgetrs(self, operation, n, k, dtype, a, step, pivots, b_dtype, b, b_step, info, *_):
        assert operation in (cusolver.OP_N, cusolver.OP_T)
        assert dtype == b_dtype
        lu = self.matrix(a, TYPES[dtype], n, n, step)
        x = self.matrix(b, TYPES[dtype], n, k, b_step).copy()
        places = self.read(pivots, np.int64, n) - 1
        assert places.min() >= 0, "a pivot is out of range"
        assert places.max() < n, "a pivot is out of range"
        with np.errstate(all="ignore"):
            if operation == cusolver.OP_N:
                for j in range(n):
                    x[[j, places[j]]] = x[[places[j], j]]
                for j in range(n):  # L
                    x[j] -= lu[j, :j] @ x[:j]
                for j in reversed(range(n)):  # U
                    x[j] = (x[j] - lu[j, j + 1 :] @ x[j + 1 :]) / lu[j, j]
            else:
                for j in range(n):  # U^T
                    x[j] = (x[j] - lu[:j, j] @ x[:j]) / lu[j, j]
                for j in reversed(range(n)):  # L^T
                    x[j] -= lu[j + 1 :, j] @ x[j + 1 :]
                for j in reversed(range(n)):
                    x[[j, places[j]]] = x[[places[j], j]]
        self.write(b, x.T)
        self.end(info, 0)

    def Xgeqrf(self, m, n, dtype, a, step, tau_type, tau, compute, *rest):
        assert dtype == compute == tau_type
        work, size, host, host_size, info = rest[:5]
        self.take(work, size, host, host_size)
        reflections, factors = np.linalg.qr(self.matrix(a, TYPES[dtype], m, n, step), mode="raw")
        self.write(a, reflections)
        self.write(tau, factors)
        self.end(info, 0)

    def orgqr(self, dtype, m, n, k, a, step, tau, work, size, info, *_):
        self.take_device(work, size * dtype.itemsize)
        vectors = self.matrix(a, dtype, m, k, step)
        factors = self.read(tau, dtype, k)
        q = np.eye(m, n, dtype=dtype)
        for j in reversed(range(k)):
            v = np.concatenate([np.zeros(j), [1], vectors[j + 1 :, j]]).astype(dtype)
            q -= factors[j] * np.outer(v, v.conj() @ q)
        self.write(a, q.T)
        self.end(info, 0)

    def Xsyevd(self, vectors, uplo, n, dtype, a, step, real, values, compute, *rest):
        work, size, host, host_size, info = rest[:5]
        assert dtype == compute
        self.take(work, size, host, host_size)
        x = self.matrix(a, TYPES[dtype], n, n, step)
        assert np.isfinite(x).all(), "the iteration would not end"
        assert not np.diagonal(x).imag.any(), "cuSOLVER does not say that it ignores them"
        found, columns = np.linalg.eigh(x, "U" if uplo == cusolver.UPPER else "L")
        self.write(values, found.astype(TYPES[real]))
        self.write(a, columns.T if vectors else np.full_like(x, np.nan))
        self.end(info, 0)

    def Xgesvd(self, job_u, job_v, m, n, dtype, a, step, real, s, u_type, u, u_step, *rest):
        v_type, v, v_step, compute, work, size, host, host_size, info = rest[:9]
        assert job_u == job_v
        assert dtype == u_type == v_type == compute
        assert m >= n
        self.take(work, size, host, host_size)
        x = self.matrix(a, TYPES[dtype], m, n, step)
        assert np.isfinite(x).all(), "the iteration would not end"
        left, values, right = np.linalg.svd(x, full_matrices=job_u == ord("A"))
        self.write(s, values.astype(TYPES[real]))
        if job_u != ord("N"):
            assert (u_step, v_step) == (m, n)
            self.write(u, left.T)
            self.write(v, right.T)
        self.write(a, np.full_like(x, np.nan))
        self.end(info, 0)

    def Xgeev(self, job_left, vectors, n, dtype, a, step, w_type, w, *rest):
        _left_type, _left, _left_step, v_type, v, v_step, compute = rest[:7]
        work, size, host, host_size, info = rest[7:12]
        assert job_left == cusolver.NO_VECTORS
        assert dtype == w_type == v_type == compute
        self.take(work, size, host, host_size)
        x = self.matrix(a, TYPES[dtype], n, n, step)
        assert np.isfinite(x).all(), "the iteration would not end"
        values, columns = np.linalg.eig(x)
        self.write(w, values)
        if vectors:
            assert v_step == n
            self.write(v, columns.T)
        self.write(a, np.full_like(x, np.nan))
        self.end(info, 0)
