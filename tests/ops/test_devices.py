"""Arrays of two devices: each error names the argument that is not where the others are."""

from __future__ import annotations


def test_arrays_of_two_devices(python):
    done = python(
        """
        import cyrt
        x, y = (cyrt.ones((3, 3), device=i) for i in range(2))
        there, mask = cyrt.asarray([0, 1], device=1), y > 0
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
            ("clip: max", lambda: cyrt.clip(x, x, y)),
            ("sum: out", lambda: cyrt.sum(x, 0, out=y[0])),
            ("sum: where", lambda: cyrt.sum(x, where=mask)),
            ("cumsum: out", lambda: cyrt.cumsum(x, 0, out=y)),
            ("diff: prepend", lambda: cyrt.diff(x, prepend=y)),
            ("matmul: x2", lambda: x @ y),
            ("matmul: out", lambda: cyrt.matmul(x, x, out=y)),
            ("dot: out", lambda: cyrt.dot(x, x, out=y)),
            ("tensordot: x2", lambda: cyrt.tensordot(x, y)),
            ("concat: arrays[1]", lambda: cyrt.concat([x, y])),
            ("stack: arrays[2]", lambda: cyrt.stack([x, x, y])),
            ("searchsorted: v", lambda: cyrt.searchsorted(x[0], y)),
            ("searchsorted: sorter", lambda: cyrt.searchsorted(x[0], x, sorter=there)),
            ("isin: test_elements", lambda: cyrt.isin(x, y)),
            ("array_equiv: a2", lambda: cyrt.array_equiv(x, y)),
            ("indices", lambda: cyrt.take(x, there, axis=0)),
            ("indices", lambda: x[there]),
            ("indices", lambda: put((slice(None), there), 1)),
            ("take_along_axis: indices", lambda: cyrt.take_along_axis(x, mask.astype("int64"))),
            ("mask", lambda: x[mask]),
            ("mask", lambda: put(mask, 1)),
            ("the value of an assignment", lambda: put(cyrt.asarray([0], device=0), y[0])),
            ("the value of an assignment", lambda: put(x > 5, y[0, 0])),
            ("add.at: b", lambda: cyrt.add.at(x, [0, 1], y[0])),
            ("indices", lambda: cyrt.add.at(x, there, 1.0)),
            ("bincount: weights", lambda: cyrt.bincount(cyrt.asarray([1, 2]), y[0, :2])),
            ("histogram: bins", lambda: cyrt.histogram(x, y[0])),
            ("interp: fp", lambda: cyrt.interp(x, x[0], y[0])),
            ("fmax: x2", lambda: cyrt.fmax(x, y)),
            ("copyto: src", lambda: cyrt.copyto(x, y)),
            ("piecewise: funclist", lambda: cyrt.piecewise(x, x > 0, [y])),
            ("lexsort: keys", lambda: cyrt.lexsort([x[0], y[0]])),
        ]
        for name, call in CALLS:
            try:
                call()
            except ValueError as error:
                wanted = f"{name}: expected an array on device 0, got one on device 1"
                assert wanted in str(error), (name, error)
            else:
                raise SystemExit(f"not refused: {name}")
        print((x + 1).tolist()[0], (y - 1).tolist()[0], (y - 1).device)
    """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[2.0, 2.0, 2.0] [0.0, 0.0, 0.0]")
