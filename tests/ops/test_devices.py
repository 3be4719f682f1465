"""Arrays of two devices: each error names the argument that is not where the others are."""

from __future__ import annotations


def test_arrays_of_two_devices(python):
    done = python(
        """
        import cyrt
        x, y = (cyrt.ones((3, 3), device=i) for i in range(2))
        there, mask, mask_here = cyrt.asarray([0, 1], device=1), y > 0, cyrt.asarray([[0]])
        def put(key, value):
            x[key] = value
        CALLS = [
            ("add: x2", lambda: x + y),
            ("add: x2", lambda: cyrt.add(x, y[:1])),
            ("pow: x2", lambda: cyrt.pow(x, y, out=x)),
            ("add: out", lambda: cyrt.add(x, x, out=y)),
            ("exp: out", lambda: cyrt.exp(x, out=y)),
            ("add: where", lambda: cyrt.add(x, x, out=x, where=mask)),
            ("where: x2", lambda: cyrt.where(x > 0, x, y)),
            ("clip: min", lambda: cyrt.clip(x, y)),
            ("clip: max", lambda: cyrt.clip(x, x, y)),
            ("clip: max", lambda: cyrt.clip(x, None, y)),
            ("clip: out", lambda: cyrt.clip(x, out=y)),
            ("sum: out", lambda: cyrt.sum(x, 0, out=y[0])),
            ("sum: where", lambda: cyrt.sum(x, where=mask)),
            ("cumsum: out", lambda: cyrt.cumsum(x, 0, out=y)),
            ("diff: prepend", lambda: cyrt.diff(x, prepend=y)),
            ("matmul: x2", lambda: x @ y),
            ("matmul: out", lambda: cyrt.matmul(x, x, out=y)),
            ("dot: out", lambda: cyrt.dot(x, x, out=y)),
            ("outer: x2", lambda: cyrt.outer(x[0], y[0])),
            ("addmm: b", lambda: cyrt.addmm(x, x, y)),
            ("tensordot: x2", lambda: cyrt.tensordot(x, y)),
            ("vdot: b", lambda: cyrt.vdot(x, y)),
            ("kron: b", lambda: cyrt.kron(x, y)),
            ("cross: b", lambda: cyrt.cross(x, y)),
            ("concat: arrays[1]", lambda: cyrt.concat([x, y])),
            ("stack: arrays[2]", lambda: cyrt.stack([x, x, y])),
            ("searchsorted: v", lambda: cyrt.searchsorted(x[0], y)),
            ("searchsorted: sorter", lambda: cyrt.searchsorted(x[0], x, sorter=there)),
            ("isin: test_elements", lambda: cyrt.isin(x, y)),
            ("union1d: ar2", lambda: cyrt.union1d(x, y)),
            ("setdiff1d: ar2", lambda: cyrt.setdiff1d(x, y)),
            ("array_equal: a2", lambda: cyrt.array_equal(x, y)),
            ("array_equiv: a2", lambda: cyrt.array_equiv(x, y)),
            ("isclose: b", lambda: cyrt.isclose(x, y)),
            ("allclose: rtol", lambda: cyrt.allclose(x, x, y)),
            ("take: indices", lambda: cyrt.take(x, there, axis=0)),
            ("indices", lambda: x[there]),
            ("indices", lambda: put((slice(None), there), 1)),
            ("take_along_axis: indices", lambda: cyrt.take_along_axis(x, mask.astype("int64"))),
            ("put_along_axis: values", lambda: cyrt.put_along_axis(x, mask_here, y)),
            ("mask", lambda: x[mask]),
            ("mask", lambda: x[mask[0]]),
            ("mask", lambda: put(mask, 1)),
            ("mask", lambda: put(mask, x[0])),
            ("the value of an assignment", lambda: put(cyrt.asarray([0], device=0), y[0])),
            ("the value of an assignment", lambda: put(x > 5, y[0, 0])),
            ("the source of a copy", lambda: put(slice(None), y)),
            ("add.at: b", lambda: cyrt.add.at(x, [0, 1], y[0])),
            ("indices", lambda: cyrt.add.at(x, there, 1.0)),
            ("put: v", lambda: cyrt.put(x, [0], y)),
            ("putmask: values", lambda: cyrt.putmask(x, x > 5, y)),
            ("place: vals", lambda: cyrt.place(x, x > 5, y)),
            ("bincount: weights", lambda: cyrt.bincount(cyrt.asarray([1, 2]), y[0, :2])),
            ("histogram: bins", lambda: cyrt.histogram(x, y[0])),
            ("histogram_bin_edges: bins", lambda: cyrt.histogram_bin_edges(x, y[0])),
            ("interp: fp", lambda: cyrt.interp(x, x[0], y[0])),
            ("interp: left", lambda: cyrt.interp(x, x[0], x[0], y[0, 0])),
            ("convolve: v", lambda: cyrt.convolve(x[0], y[0])),
            ("correlate: v", lambda: cyrt.correlate(x[0], y[0])),
            ("cov: y", lambda: cyrt.cov(x, y)),
            ("corrcoef: y", lambda: cyrt.corrcoef(x, y)),
            ("ediff1d: to_end", lambda: cyrt.ediff1d(x, y)),
            ("gradient: varargs", lambda: cyrt.gradient(x, y[0], axis=0)),
            ("trapezoid: dx", lambda: cyrt.trapezoid(x, dx=y[0, :2])),
            ("polyval: p", lambda: cyrt.polyval(y[0], x)),
            ("ldexp: x2", lambda: cyrt.ldexp(x, there[0])),
            ("divmod: x2", lambda: cyrt.divmod(x, y)),
            ("nan_to_num: posinf", lambda: cyrt.nan_to_num(x, posinf=y[0, 0])),
            ("fmax: x2", lambda: cyrt.fmax(x, y)),
            ("copyto: src", lambda: cyrt.copyto(x, y)),
            ("piecewise: funclist", lambda: cyrt.piecewise(x, x > 0, [y])),
            ("lexsort: keys", lambda: cyrt.lexsort([x[0], y[0]])),
            ("uniform: high", lambda: cyrt.random.uniform(x, y)),
            ("normal: scale", lambda: cyrt.random.normal(x, y)),
            ("normal: loc", lambda: cyrt.random.normal(y, device=0)),
            ("bernoulli: p", lambda: cyrt.random.bernoulli(y, device=0)),
            ("choice: p", lambda: cyrt.random.choice(x[0], p=y[0])),
            ("gelu_vjp: x", lambda: cyrt.nn.gelu_vjp(x, y)),
            ("swiglu: up", lambda: cyrt.nn.swiglu(x, y)),
        ]
        for name, call in CALLS:
            try:
                call()
            except ValueError as error:
                wanted = f"{name}: expected an array on device 0, got one on device 1"
                assert str(error).startswith(wanted), (name, error)
            else:
                raise SystemExit(f"not refused: {name}")
        print((x + 1).tolist()[0], (y - 1).tolist()[0], (y - 1).device)
    """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[2.0, 2.0, 2.0] [0.0, 0.0, 0.0]")
