"""The tape: levels, writes in place, threads, errors."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import cyrt
from cyrt import tape


def values(*numbers):
    return cyrt.asarray(np.array(numbers))


def total(x):
    return cyrt.sum(x)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Layer:
    weight: Any
    bias: Any


@pytest.mark.parametrize(
    "params",
    [
        {"a": values(1.0), "b": [values(2.0, 3.0)]},
        [values(1.0), (values(2.0), None)],
        Pair(values(1.0), values(2.0)),
        Layer(values(1.0), {"x": values(2.0)}),
    ],
)
def test_a_gradient_has_the_structure_of_its_argument(params):
    def square(nest):
        leaves, _ = cyrt.trees.flatten(nest, cyrt.Array, "nest")
        return sum(total(each * each) for each in leaves)

    leaves, structure = cyrt.trees.flatten(params, cyrt.Array, "params")
    found = structure.flatten(cyrt.grad(square)(params), cyrt.Array, "gradient")
    for gradient, leaf in zip(found, leaves, strict=True):
        np.testing.assert_allclose(gradient.numpy(), 2 * leaf.numpy())


def test_a_function_sees_the_entries_of_a_dict_in_their_own_order():
    f = cyrt.grad(lambda p: (next(iter(p.values())) ** 2).sum())
    a, b = cyrt.asarray([1.0]), cyrt.asarray([10.0])
    for params in ({"a": a, "b": b}, {"b": b, "a": a}):
        first, second = params
        gradient = f(params)
        assert list(gradient) == [first, second]
        assert gradient[first].tolist() == [2 * params[first].item()]
        assert gradient[second].tolist() == [0.0]


def test_several_arguments_and_what_else_a_function_returns():
    def f(x, y, scale=1.0):
        return total(x * y) * scale, "aside"

    x, y = values(1.0, 2.0), values(3.0, 4.0)
    ((value, aside), gradients) = cyrt.value_and_grad(f, (0, -1), has_aux=True)(x, y, scale=2.0)
    assert value.item() == 22.0
    assert aside == "aside"
    assert isinstance(gradients, tuple)
    np.testing.assert_allclose(gradients[0].numpy(), [6.0, 8.0])
    np.testing.assert_allclose(gradients[1].numpy(), [2.0, 4.0])
    gradient, aside = cyrt.grad(f, has_aux=True)(x, y)
    assert aside == "aside"
    assert gradient.tolist() == [3.0, 4.0]


def test_a_function_may_return_its_argument_or_a_constant():
    x = values(3.0).reshape(())
    assert cyrt.grad(lambda x: x)(x).item() == 1.0
    assert cyrt.grad(lambda x: cyrt.asarray(2.0))(x).item() == 0.0
    assert cyrt.grad(lambda x: x * 0.0 + 1.0)(x).item() == 0.0


def test_what_a_function_ignores_has_zeros():
    unused = {"w": [values(1.0, 2.0), cyrt.ones((2, 3))], "b": cyrt.zeros(2, "bfloat16")}
    value, (first, nest) = cyrt.value_and_grad(lambda x, nest: total(x), (0, 1))(
        values(3.0), unused
    )
    assert (value.item(), first.tolist()) == (3.0, [1.0])
    leaves, structure = cyrt.trees.flatten(unused, cyrt.Array, "nest")
    found = structure.flatten(nest, cyrt.Array, "gradient")
    for gradient, leaf in zip(found, leaves, strict=True):
        assert (gradient.shape, gradient.dtype) == (leaf.shape, leaf.dtype)
        assert not gradient.numpy().any()
        gradient += 1.0  # it is no array of the caller's
    assert unused["w"][0].tolist() == [1.0, 2.0]
    pull = cyrt.vjp(lambda x: (x, {"x": x, "c": cyrt.ones(2)}), values(1.0, 2.0))[1]
    g = values(1.0, 10.0)
    assert pull((g, {"x": g, "c": cyrt.ones(2)}))[0].tolist() == [2.0, 20.0]
    assert g.tolist() == [1.0, 10.0]


def test_gradients_of_two_arguments_are_not_the_same_memory():
    first, second = cyrt.grad(lambda x, y: total(x + y), (0, 1))(values(1.0, 2.0), values(3.0, 4.0))
    first += 1.0
    assert second.tolist() == [1.0, 1.0]


def test_levels_do_not_confuse_their_arguments():
    x = cyrt.asarray(3.0)
    assert cyrt.grad(lambda x: x * cyrt.grad(lambda y: x + y)(x))(x).item() == 1.0
    assert cyrt.grad(lambda x: cyrt.grad(lambda y: x * y * y)(x))(x).item() == 12.0
    third = cyrt.grad(cyrt.grad(cyrt.grad(lambda x: x**4)))
    assert third(x).item() == pytest.approx(72.0)


def test_a_pull_back_may_be_called_again_and_differentiated():
    x = values(1.0, 2.0)
    y, pull = cyrt.vjp(lambda x: {"y": x**3}, x)
    assert y["y"].tolist() == [1.0, 8.0]
    for _ in range(2):
        assert pull({"y": values(1.0, 1.0)})[0].tolist() == [3.0, 12.0]
    assert cyrt.grad(lambda g: total(pull({"y": g})[0]))(x).tolist() == [3.0, 12.0]
    hessian_product = cyrt.grad(
        lambda x: total(cyrt.vjp(lambda z: z**3, x)[1](values(1.0, 10.0))[0])
    )
    assert hessian_product(x).tolist() == [6.0, 120.0]


def test_a_closed_tape_follows_nothing():
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return total(kept[0])

    x = values(1.0, 2.0)
    cyrt.grad(f)(x)
    assert cyrt.grad(lambda x: total(x * kept[0]))(x).tolist() == [2.0, 4.0]
    kept[0] += 1.0


def test_an_error_closes_the_tape():
    def fails(x):
        x * 2.0
        raise KeyError("f")

    x = values(1.0)
    with pytest.raises(KeyError):
        cyrt.grad(fails)(x)
    with pytest.raises(KeyError):
        cyrt.grad(lambda x: cyrt.grad(fails)(x) * x)(x)
    x += 1.0
    assert cyrt.grad(total)(x).tolist() == [1.0]


def test_an_error_in_the_backward_pass_closes_the_tape():
    @cyrt.custom_vjp
    def fails(x):
        return x * 1.0

    def backward(kept, g):
        raise KeyError("backward")

    fails.defvjp(lambda x: (x * 1.0, x), backward)
    calls = []

    def fails_again(x):
        calls.append(x)
        if len(calls) > 1:
            raise KeyError("computed again")
        return x * x

    x = values(1.0, 2.0)
    gc.collect()
    before = cyrt.memory_stats()["in_use"]
    for f in (
        fails,
        cyrt.checkpoint(fails_again),
        lambda x: cyrt.grad(lambda y: total(fails(y)))(x),
    ):
        calls.clear()
        with pytest.raises(KeyError):
            cyrt.grad(lambda x, f=f: total(f(x * 2.0) * x))(x)
        assert tape.num_levels() == 0
    calls.clear()
    gc.collect()
    cyrt.synchronize()
    assert cyrt.memory_stats()["in_use"] == before
    x += 1.0
    assert cyrt.grad(total)(x).tolist() == [1.0, 1.0]


# -- writing ---------------------------------------------------------------------------------------


def _add(x):
    x += 1.0


def _set(x):
    x[0] = 1.0


def _set_slice(x):
    x[...] = 2.0


def _out(x):
    cyrt.exp(x * 1.0, out=x)


@pytest.mark.parametrize("write", [_add, _set, _set_slice, _out])
def test_an_argument_is_not_written(write):
    def f(x):
        write(x)
        return total(x)

    x = values(1.0, 2.0)
    with pytest.raises(ValueError, match=r"differentiated function is written .* x = x.copy\(\)"):
        cyrt.grad(f)(x)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:],
        lambda x: x[1:],
        lambda x: x[::-1],
        lambda x: x.reshape(2, 1),
        lambda x: x.ravel(),
        lambda x: x.T,
        lambda x: x.astype(x.dtype, copy=False),
    ],
)
@pytest.mark.parametrize("write", [_add, _set_slice, _out])
def test_an_argument_is_not_written_through_a_view(view, write):
    def f(x):
        write(view(x))
        return cyrt.zeros((), x.dtype)

    x = values(1.0, 2.0)
    with pytest.raises(ValueError, match="an argument of a differentiated function is written"):
        cyrt.grad(f)(x)
    assert x.tolist() == [1.0, 2.0]


def test_a_value_is_not_written_where_it_is_an_argument():
    """It may be afterwards; so may other parts of its memory."""

    def f(x, inside):
        y = x * 2.0

        def g(z):
            if inside:
                y[...] = z
            return total(z * z)

        found = cyrt.grad(g)(y[:1])
        y[1:] += found
        return total(y * y)

    x = values(1.0, 2.0)
    assert cyrt.grad(f)(x, False).tolist() == [72.0, 32.0]
    with pytest.raises(ValueError, match="an argument of a differentiated function is written"):
        cyrt.grad(f)(x, True)

    def apart(x):
        part = whole[1:]
        part *= x
        return total(part)

    whole = values(5.0, 2.0)
    assert cyrt.grad(apart)(whole[:1]).tolist() == [2.0]
    assert whole.tolist() == [5.0, 10.0]


@pytest.mark.parametrize("write", [_add, _set, _set_slice])
def test_a_value_that_a_gradient_needs_is_not_written(write):
    def f(x):
        y = cyrt.exp(x)
        write(y)
        return total(y)

    with pytest.raises(RuntimeError, match=r"exp, called at .*test_tape.py:\d+, needs a value"):
        cyrt.grad(f)(values(1.0, 2.0))


@pytest.mark.parametrize("write", [_add, _set, _set_slice])
def test_a_view_is_stale_after_its_array_was_written(write):
    def f(x):
        y = x * 2.0
        view = y[1:]
        write(y)
        return total(view)

    with pytest.raises(RuntimeError, match="written through another array"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_an_array_is_stale_after_its_view_was_written():
    def f(x):
        y = x * 2.0
        y[1:] += x[1:]
        view = y[:1]
        view += 1.0
        return total(y)

    with pytest.raises(RuntimeError, match="written through another array"):
        cyrt.grad(f)(values(1.0, 2.0))


def _divide(y, x):
    y /= x
    return y


def _multiply(y, x):
    y *= x
    return y


def _power(y, x):
    y **= x
    return y


def _multiply_part(y, x):
    y[1:] *= x[1:]
    return y


def _sort(y, x):
    y.sort()
    return y


def _partition(y, x):
    y.partition(1)
    return y


# In place, and without a write.
OVERWRITING = [
    (_multiply, lambda y, x: y * x),
    (_divide, lambda y, x: y / x),
    (_power, lambda y, x: y**x),
    (_multiply_part, lambda y, x: cyrt.concat([y[:1], y[1:] * x[1:]])),
    (lambda y, x: _multiply(y, y), lambda y, x: y * y),
    (lambda y, x: cyrt.multiply(x, y, out=y), lambda y, x: x * y),
    (lambda y, x: cyrt.sqrt(y, out=y), lambda y, x: cyrt.sqrt(y)),
    (lambda y, x: cyrt.sin(y, out=y), lambda y, x: cyrt.sin(y)),
    (lambda y, x: cyrt.clip(y, 1.0, x, out=y), lambda y, x: cyrt.clip(y, 1.0, x)),
    (lambda y, x: cyrt.log1p(y, out=y), lambda y, x: cyrt.log1p(y)),
    (lambda y, x: _multiply(_multiply(y, x), x + y), lambda y, x: y * x * (x + y * x)),
    (lambda y, x: _multiply(cyrt.ones_like(y), x), lambda y, x: x * 1.0),
    (_sort, lambda y, x: cyrt.sort(y)),
    (_partition, lambda y, x: cyrt.partition(y, 1)),
]


@pytest.mark.parametrize(("write", "same"), OVERWRITING)
def test_a_call_keeps_what_it_overwrites(write, same):
    """The gradient is that of the call without a write, and of differences."""
    weights = values(1.0, -2.0, 0.5)

    def of(function):
        def f(x):
            return total(function(x * 1.5 + 0.25, x) * weights)

        return f

    x = values(0.7, 1.1, 1.9)
    found = cyrt.grad(of(write))(x).numpy()
    np.testing.assert_allclose(found, cyrt.grad(of(same))(x).numpy(), rtol=1e-14)
    step = 1e-6
    for i in range(3):
        moved = np.eye(3)[i] * step
        differences = [of(same)(x + sign * cyrt.asarray(moved)).item() for sign in (1, -1)]
        assert found[i] == pytest.approx((differences[0] - differences[1]) / 2 / step, rel=1e-6)
    twice = [
        cyrt.grad(lambda x, f=f: total(cyrt.grad(of(f))(x) ** 2))(x).numpy() for f in (write, same)
    ]
    np.testing.assert_allclose(*twice, rtol=1e-12)


def test_a_value_that_an_earlier_gradient_needs_is_not_multiplied():
    def f(x):
        y = cyrt.exp(x)
        y *= x
        return total(y)

    with pytest.raises(RuntimeError, match=r"exp, called at .*test_tape.py:\d+, needs a value"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_what_no_gradient_needs_is_not_copied():
    def copied(write):
        """Return the bytes that are in use after a write and were not before."""

        def f(x):
            y = x * 2.0
            before = cyrt.memory_stats()["in_use"]
            write(y, x)
            added = cyrt.memory_stats()["in_use"] - before
            return total(y), added

        return cyrt.grad(f, has_aux=True)(cyrt.ones(1 << 14, dtype="float64"))[1]

    assert copied(lambda y, x: y.__iadd__(x)) == 0
    assert copied(lambda y, x: y.__imul__(3.0)) == 0
    assert copied(lambda y, x: cyrt.exp(y, out=y)) == 0
    assert copied(_multiply) == 1 << 17


def test_errors_name_the_line_of_the_caller():
    """Functions that are written with others in Python call them from cyrt's own lines."""

    def f(x):
        y = x * 2.0
        found = cyrt.average(y, weights=y)
        y += 1.0
        return found

    with pytest.raises(RuntimeError, match=r"multiply, called at .*test_tape.py:\d+, needs"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_a_view_from_before_a_value_was_written_is_stale():
    def f(x):
        buffer = cyrt.zeros(3, "float64")
        view = buffer[:1]
        buffer[0] = x[0]
        return total(view)

    with pytest.raises(RuntimeError, match="written through another array"):
        cyrt.grad(f)(values(1.0, 2.0))


@pytest.mark.parametrize("part", [slice(None), slice(1, None)], ids=["whole", "part"])
def test_an_array_that_was_written_is_an_argument_and_a_constant(part):
    @cyrt.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (g * x * 2.0,))

    def f(x):
        y = x * 1.0
        y[part] += 1.0
        constant = cyrt.stop_gradient(y)
        return total(cyrt.checkpoint(cyrt.square)(y) + square(y) + constant * y)

    y = np.array([1.0, 2.0])
    y[part] += 1.0
    assert cyrt.grad(f)(values(1.0, 2.0)).tolist() == (5 * y).tolist()


def test_a_finalizer_in_the_middle_of_a_call_changes_no_gradient(python):
    """The first call with these operands makes a plan, where the collector may run."""
    done = python(
        """
        import gc
        import cyrt

        def f(x):
            y, w = x * 2.0, cyrt.exp(x)

            class Finalized:
                def __del__(self):
                    finalized.append(w * y)

            garbage = Finalized()
            garbage.itself = garbage
            del garbage
            gc.set_threshold(1, 1, 1)
            gc.enable()
            z = cyrt.hypot(4.0, y)
            gc.disable()
            return z

        finalized = []
        gc.disable()
        x = cyrt.asarray(1.5, "float64")
        assert cyrt.grad(f)(x).item() == 2.0 * 3.0 / 5.0
        assert finalized
        finalized.clear()
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr


def test_values_may_be_written_between_the_result_and_its_pull_back():
    x = values(1.0, 2.0)
    _, pull = cyrt.vjp(lambda x: x * x, x)
    x += 1.0
    with pytest.raises(RuntimeError, match="multiply"):
        pull(values(1.0, 1.0))


def test_a_constant_is_written_into():
    def f(x):
        y = x * 2.0
        y[...] = 5.0
        return total(y) + total(x)

    assert cyrt.grad(f)(values(1.0, 2.0)).tolist() == [1.0, 1.0]


def test_memory_that_is_used_again_is_not_stale():
    def f(x):
        found = total(x)
        for _ in range(4):
            y = cyrt.zeros(2, "float64")
            y[0] = x[0]
            found = found + total(y)
            del y
            found = found + total(cyrt.ones(2, "float64")) + total(x * cyrt.ones(2, "float64"))
        return found

    assert cyrt.grad(f)(values(1.0, 2.0)).tolist() == [9.0, 5.0]


def test_an_array_becomes_a_constant_when_a_constant_is_written():
    def f(x):
        y = x * 2.0
        cyrt.exp(cyrt.zeros(2, "float64"), out=y)
        return total(y * x)

    assert cyrt.grad(f)(values(1.0, 2.0)).tolist() == [1.0, 1.0]


def test_a_pull_back_does_not_return_what_it_was_given():
    g = values(1.0, 2.0)
    found = cyrt.vjp(lambda x: x, values(3.0, 4.0))[1](g)[0]
    found += 1.0
    assert g.tolist() == [1.0, 2.0]


# -- what is refused -------------------------------------------------------------------------------


def test_a_result_that_is_no_scalar_is_refused():
    x = values(1.0, 2.0)
    for f, found in (
        (lambda x: x, "float64 of shape \\(2,\\)"),
        (lambda x: cyrt.argmax(x), "int64 of shape \\(\\)"),
        (lambda x: 1.0, "float"),
        (lambda x: None, "NoneType"),
    ):
        with pytest.raises(TypeError, match=f"the result: .*got {found}"):
            cyrt.grad(f)(x)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_at_indices_are_refused(name):
    def f(x):
        y = x * 2
        getattr(cyrt, name).at(y, cyrt.asarray([0, 0]), x[:2])
        return total(y)

    with pytest.raises(TypeError, match=f"^{name}.at: there is no gradient; stop_gradient"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_an_argument_of_another_kind_is_refused():
    for x, found in (
        (cyrt.asarray([1, 2]), "int64"),
        (cyrt.asarray([True]), "bool"),
        (np.ones(2), "ndarray"),
        ({"a": [cyrt.asarray(1)]}, r"argument 0\['a'\]\[0\].*int64"),
        ({1.0, 2.0}, "set"),
    ):
        with pytest.raises(TypeError, match=found):
            cyrt.grad(total)(x)


def test_argnums_are_checked():
    x = values(1.0)
    with pytest.raises(ValueError, match="argnums: 1 is out of range for 1 positional arguments"):
        cyrt.grad(total, 1)(x)
    with pytest.raises(ValueError, match="twice"):
        cyrt.grad(lambda x, y: x, (0, -2))(x, x)
    with pytest.raises(TypeError, match="argnums"):
        cyrt.grad(total, "x")
    for arguments in ((x,), ({"w": x},), ([x, x],), (1.5,), (np.ones(2), x)):
        with pytest.raises(TypeError, match=r"grad\(f\) is a function, .*: grad\(f\)\(x\)"):
            cyrt.grad(total, *arguments)
    with pytest.raises(TypeError, match="expected a function"):
        cyrt.grad(3)


def test_a_kernel_without_a_rule_is_refused():
    double = cyrt.Kernel("__global__ void twice(double* x) { x[threadIdx.x] *= 2; }", "twice")

    def f(x):
        y = x * 1.0
        double[1, 2](y)
        return total(y)

    with pytest.raises(TypeError, match="twice uses an array that is differentiated.*custom_vjp"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_a_function_without_a_gradient_is_refused():
    with pytest.raises(TypeError, match="nextafter"):
        cyrt.grad(lambda x: total(cyrt.nextafter(x, 2.0)))(values(1.0))
    with pytest.raises(TypeError, match="unique_values"):
        cyrt.grad(lambda x: total(cyrt.unique_values(x)))(values(1.0))


def _launch(y):
    cyrt.Kernel("__global__ void twice(double* x) { x[0] *= 2; }", "twice")[1, 1](y)


@pytest.mark.parametrize(
    "use",
    [
        lambda y: y + 1.0,
        lambda y: y[0],
        lambda y: y.numpy(),
        lambda y: cyrt.argmax(y),
        lambda y: cyrt.nn.softmax(y),
        lambda y: cyrt.grad(total)(y),
        lambda y: cyrt.grad(lambda x: total(x * y))(values(1.0, 2.0)),
        lambda y: cyrt.checkpoint(total)(y),
        lambda y: cyrt.vjp(total, values(1.0, 2.0))[1](y[0]),
        lambda y: cyrt.random.normal(y, 1.0),
        _add,
        _set,
        _launch,
    ],
)
def test_a_value_of_another_thread_is_refused(use):
    errors = []

    def f(x):
        y = x * 2.0

        def other():
            try:
                use(y)
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return total(y)

    assert cyrt.grad(f)(values(1.0, 2.0)).tolist() == [2.0, 2.0]
    assert len(errors) == 1
    assert "another thread" in errors[0]


def test_threads_differentiate_at_once():
    x = values(1.0, 2.0)
    found = []

    def work(scale):
        for _ in range(20):
            found.append((scale, cyrt.grad(lambda x: total(x * x * scale))(x).tolist()))

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 80
    for scale, gradient in found:
        assert gradient == [2 * scale, 4 * scale]


def test_gradients_go_from_device_to_device(python):
    done = python(
        """
        import cyrt
        def f(x, y):
            near = cyrt.to_device(x * x, 1) * y
            return (cyrt.astype(near, "float64", device=0) * x).sum()
        x, y = cyrt.asarray([2.0, 3.0], "float64"), cyrt.ones(2, "float64", device=1)
        of_x, of_y = cyrt.grad(f, (0, 1))(x, y)
        assert of_x.device.index == 0 and of_x.tolist() == [12.0, 27.0]
        assert of_y.device.index == 1 and of_y.tolist() == [8.0, 27.0]
        try:
            cyrt.grad(lambda nest: (nest["x"] * nest["y"]).sum())({"x": x, "y": y})
        except ValueError as error:
            assert "device" in str(error), error
        else:
            raise AssertionError("arrays of two devices were multiplied")
        found = cyrt.grad(lambda nest: nest["x"].sum())({"x": x, "y": y})
        assert found["x"].device.index == 0 and found["x"].tolist() == [1.0, 1.0]
        assert found["y"].device.index == 1 and found["y"].tolist() == [0.0, 0.0]
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.returncode == 0, done.stderr


# -- conventions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: cyrt.maximum(x, x[::-1]), [1.0, 1.0], [1.0, 1.0]),
        (lambda x: cyrt.maximum(x, 1.0), [1.0, 2.0], [0.5, 1.0]),
        (lambda x: cyrt.minimum(x, 1.0), [1.0, 2.0], [0.5, 0.0]),
        (cyrt.max, [2.0, 1.0, 2.0], [1.0, 0.0, 0.0]),
        (cyrt.min, [1.0, 1.0, 2.0], [1.0, 0.0, 0.0]),
        (cyrt.abs, [0.0, -1.0], [0.0, -1.0]),
        (lambda x: cyrt.clip(x, 0.0, 1.0), [-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0]),
        (cyrt.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (cyrt.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        (cyrt.cumulative_prod, [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
        (cyrt.std, [1.0, 1.0], [0.0, 0.0]),
        (lambda x: cyrt.where(x > 0, x, 0.0), [cyrt.nan, 2.0], [0.0, 1.0]),
        (lambda x: cyrt.sqrt(cyrt.where(x > 0, x, 1.0)) * (x > 0), [-1.0, 4.0], [0.0, 0.25]),
        (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
        (lambda x: x**2, [0.0, 2.0], [0.0, 4.0]),
        (lambda x: 0.0**x, [0.0, 2.0], [0.0, 0.0]),
        (lambda x: (-2.0) ** x, [2.0], [cyrt.nan]),
        (lambda x: values(-2.0) ** x, [2.0], [cyrt.nan]),
        (lambda x: cyrt.nan**x, [2.0], [cyrt.nan]),
        (lambda x: cyrt.real((1 + 1j) ** x), [1.0], [((1 + 1j) * np.log(1 + 1j)).real]),
        (cyrt.floor, [0.5], [0.0]),
        (cyrt.logsumexp, [cyrt.inf, 5.0, 0.0], [cyrt.nan, 0.0, 0.0]),
        (cyrt.logsumexp, [-cyrt.inf, -cyrt.inf], [0.0, 0.0]),
        (cyrt.logsumexp, [cyrt.nan, 5.0], [cyrt.nan, cyrt.nan]),
        (lambda x: cyrt.copysign(x, 1.0), [0.0, -0.0], [1.0, -1.0]),
        (lambda x: cyrt.fmod(x, 2.0), [0.0, -4.0, 3.0], [1.0, 1.0, 1.0]),
        (lambda x: cyrt.fmod(5.0, x), [2.0, -2.0, 3.0], [-2.0, 2.0, -1.0]),
        (lambda x: cyrt.modf(x)[0], [-1.0, 0.0, 2.0, 1.5], [1.0, 1.0, 1.0, 1.0]),
        (lambda x: cyrt.modf(x)[1] * x, [2.0], [2.0]),
        (lambda x: cyrt.logaddexp2(x, 1.0), [1.0, cyrt.inf, -cyrt.inf], [0.5, 1.0, 0.0]),
        (lambda x: cyrt.logaddexp2(x, x), [1.0, cyrt.inf, -cyrt.inf], [1.0, 1.0, 1.0]),
        (cyrt.sinc, [0.0, 1.0], [0.0, -1.0]),
        (lambda x: cyrt.clip(x, 0.0, 1.0), [cyrt.nan], [0.0]),
        (cyrt.nn.relu, [cyrt.nan], [0.0]),
        (lambda x: cyrt.maximum(x, 1.0), [cyrt.nan], [0.0]),
    ],
)
def test_conventions_at_edges(f, x, expected):
    np.testing.assert_allclose(cyrt.grad(lambda x: total(f(x)))(values(*x)).numpy(), expected)


def test_second_derivatives_at_edges():
    for f, at, expected in (
        (cyrt.sinc, 0.0, -(np.pi**2) / 3),
        (lambda x: cyrt.logaddexp2(x, 1.0), 1.0, np.log(2) / 4),
        (lambda x: cyrt.fmod(x * x, 3.0), 0.0, 2.0),
    ):
        found = cyrt.grad(cyrt.grad(f))(cyrt.asarray(at, dtype="float64")).item()
        assert found == pytest.approx(expected, rel=1e-12)


def test_complex_gradients_are_those_of_jax():
    z = cyrt.asarray(np.array([1.0 + 2.0j, -1.0 + 0.5j]))
    found = cyrt.grad(lambda z: total(cyrt.real(z * z)))(z).numpy()
    np.testing.assert_allclose(found, 2 * z.numpy())
    found = cyrt.grad(lambda z: total(cyrt.abs(z) ** 2))(z).numpy()
    np.testing.assert_allclose(found, 2 * np.conj(z.numpy()))
    found = cyrt.grad(lambda z: total(z.imag))(z).numpy()
    np.testing.assert_allclose(found, [-1j, -1j])


def test_types_are_kept():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = cyrt.ones(3, dtype)
        assert cyrt.grad(lambda x: total((x.astype("float32") * 2.0) ** 2))(x).dtype == dtype
    y = cyrt.ones(3, "float64")
    first, second = cyrt.grad(lambda x, y: total(x * y), (0, 1))(cyrt.ones(3, "float32"), y)
    assert first.dtype == "float32"
    assert second.dtype == "float64"


# -- custom_vjp and checkpoint ---------------------------------------------------------------------


def test_a_function_has_a_gradient_of_its_own():
    @cyrt.custom_vjp
    def cube(x, times):
        return {"y": x["x"] ** 3 * times}

    cube.defvjp(
        lambda x, times: (cube(x, times), (x["x"], times)),
        lambda kept, g: ({"x": g["y"] * kept[0] ** 2 * (100.0 * kept[1])}, None),
    )
    x = values(1.0, 2.0)
    f = lambda x: total(cube({"x": x}, 2)["y"])  # noqa: E731
    assert f(x).item() == 18.0
    assert cyrt.grad(f)(x).tolist() == [200.0, 800.0]
    second = cyrt.grad(lambda x: total(cyrt.grad(f)(x)))
    assert second(x).tolist() == [400.0, 800.0]


def test_a_kernel_takes_part():
    kernel = cyrt.Kernel(
        "__global__ void twice(const double* x, double* y, int n)"
        "{ int i = threadIdx.x; if (i < n) y[i] = 2 * x[i]; }",
        "twice",
    )

    @cyrt.custom_vjp
    def twice(x):
        y = cyrt.empty_like(x)
        kernel[1, 32](x, y, x.size)
        return y

    twice.defvjp(lambda x: (twice(x), None), lambda _, g: (twice(g),))
    x = values(1.0, 2.0)
    assert cyrt.grad(lambda x: total(twice(x * x)))(x).tolist() == [4.0, 8.0]
    assert (
        cyrt.grad(cyrt.grad(lambda x: total(twice(x * x * x))))(values(2.0).reshape(())).item()
        == 24.0
    )


@pytest.mark.parametrize(
    ("gradient", "error", "match"),
    [
        (lambda g: g, TypeError, "expected a tuple of 1 gradients"),
        (lambda g: (g, g), TypeError, "got 2"),
        (lambda g: (g[:1],), ValueError, r"expected shape \(2,\) and float64, got \(1,\)"),
        (lambda g: (g.astype("float32"),), ValueError, "and float32"),
    ],
)
def test_a_wrong_gradient_is_refused(gradient, error, match):
    @cyrt.custom_vjp
    def wrong(x):
        return x * 1.0

    with pytest.raises(TypeError, match="wrong: its gradient is not defined"):
        cyrt.grad(lambda x: total(wrong(x)))(values(1.0, 2.0))
    wrong.defvjp(lambda x: (x * 1.0, None), lambda _, g: gradient(g))
    with pytest.raises(error, match=f"wrong: backward: .*{match}"):
        cyrt.grad(lambda x: total(wrong(x)))(values(1.0, 2.0))


@dataclass
class Kept:
    value: Any


@pytest.mark.parametrize(
    "keep", [lambda x: x, lambda x: {"x": [x]}, Kept], ids=["array", "nest", "dataclass"]
)
@pytest.mark.parametrize("levels", [1, 2])
def test_what_is_kept_is_not_written(keep, levels):
    @cyrt.custom_vjp
    def square(x):
        return x * x

    def backward(kept, g):
        x = kept["x"][0] if isinstance(kept, dict) else getattr(kept, "value", kept)
        return (g * x * 2.0,)

    square.defvjp(lambda x: (x * x, keep(x)), backward)

    def f(x):
        y = x * 2.0
        z = square(y)
        y += 1.0
        return total(z)

    g = cyrt.grad(f)
    with pytest.raises(RuntimeError, match="square: what forward kept"):
        (g if levels == 1 else cyrt.grad(lambda x: total(g(x))))(values(1.0, 2.0))


def test_constants_of_a_rule_are_not_written_where_levels_are_nested():
    factor = values(3.0, 3.0)

    @cyrt.custom_vjp
    def scaled(x):
        return x * factor

    scaled.defvjp(lambda x: (x * factor, factor), lambda kept, g: (g * kept,))

    def f(x):
        z = scaled(x)
        factor.fill(0.0)
        return total(z)

    with pytest.raises(RuntimeError, match="scaled: what forward kept"):
        cyrt.grad(lambda x: total(cyrt.grad(f)(x) * x))(values(1.0, 2.0))


def test_the_error_about_an_argument_of_a_checkpoint_names_it():
    def f(x):
        y = x * 1.0
        z = cyrt.checkpoint(cyrt.square)(y)
        y.fill(0.0)
        return total(z)

    with pytest.raises(RuntimeError, match="the gradient of checkpoint, called at .*test_tape.py"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_a_checkpoint_computes_again_with_the_same_random_numbers():
    drawn = []

    def f(x):
        noise = cyrt.random.normal(shape=2, dtype="float64")
        drawn.append(noise.tolist())
        return total(cyrt.sin(x * noise))

    cyrt.random.seed(3)
    x = values(1.0, 2.0)
    expected = cyrt.grad(f)(x).tolist()
    following = cyrt.random.normal(shape=2).tolist()
    cyrt.random.seed(3)
    assert cyrt.grad(cyrt.checkpoint(f))(x).tolist() == expected
    assert drawn == [drawn[0]] * 3
    assert cyrt.random.normal(shape=2).tolist() == following


def test_a_checkpoint_computes_again_with_the_same_numbers_of_a_generator():
    x, drawn = values(1.0, 2.0), []

    def f(x, rng):
        own = cyrt.random.default_rng()
        for each in (rng, own):
            drawn.append(each.normal(size=2).tolist())
            x = x * cyrt.asarray(drawn[-1], dtype=x.dtype)
        return total(x)

    def outer(x, rng):
        return total(cyrt.checkpoint(f)(x * 2.0, rng) * x)

    for function, draws in ((f, 4), (outer, 6)):
        drawn.clear()
        rng = cyrt.random.default_rng(3)
        cyrt.grad(cyrt.checkpoint(lambda x, g=function, r=rng: g(x, r)))(x)
        assert rng.state == (3, 1)
        assert drawn == drawn[:2] * (draws // 2)


def test_a_checkpoint_leaves_the_numbers_of_other_threads_alone():
    found = []

    def other():
        found.append(cyrt.random.normal(size=2).tolist())

    def f(x):
        noise = cyrt.random.normal(size=2, dtype="float64")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return total(x * noise)

    cyrt.random.seed(3)
    cyrt.grad(cyrt.checkpoint(f))(values(1.0, 2.0))
    other()
    cyrt.random.seed(3)
    assert found == [cyrt.random.normal(size=2).tolist() for _ in range(4)][1:]


@pytest.mark.parametrize(("first", "count"), [(2, "more"), (1, "fewer")])
def test_a_checkpoint_needs_as_many_random_numbers_again(first, count):
    calls = []

    def f(x):
        calls.append(None)
        for _ in range(2 + (len(calls) - 1) * (1 if first == 2 else -1)):
            x = x * cyrt.random.normal(size=2, dtype="float64")
        return total(x)

    with pytest.raises(RuntimeError, match=f"random numbers {count} times than before"):
        cyrt.grad(cyrt.checkpoint(f))(values(1.0, 2.0))
    assert len(calls) == 2
    cyrt.random.normal(size=2)


def test_a_rule_that_outer_levels_differentiate_has_the_same_random_numbers():
    @cyrt.custom_vjp
    def scaled(x):
        return x * 1.0

    def forward(x):
        drawn.append(cyrt.random.normal(dtype="float64"))
        return x * x * drawn[-1], drawn[-1] * x

    drawn = []
    scaled.defvjp(forward, lambda kept, g: (2.0 * g * kept,))
    cyrt.grad(lambda x: total(cyrt.grad(lambda x: total(scaled(x)))(x)))(values(1.0, 2.0))
    assert {each.item() for each in drawn} == {drawn[0].item()}
    assert len(drawn) > 1


def test_a_checkpoint_is_differentiated_twice():
    f = cyrt.checkpoint(lambda x: x**3)
    x = cyrt.asarray(2.0)
    assert cyrt.grad(cyrt.grad(f))(x).item() == pytest.approx(12.0)


def test_arguments_of_a_checkpoint_by_name_have_gradients():
    calls = []

    @cyrt.checkpoint
    def f(x, *, nest, power=1):
        calls.append(power)
        return total(x**power * nest["y"])

    x = values(1.0, 2.0)
    found = cyrt.grad(lambda x: f(x, nest={"y": x * 3.0}, power=2))(x)
    assert found.tolist() == [9.0, 36.0]
    assert cyrt.grad(lambda x: f(values(1.0, 1.0), nest={"y": x}))(x).tolist() == [1.0, 1.0]
    assert calls == [2, 2, 1, 1]


def test_a_checkpoint_refuses_what_is_no_argument():
    def f(x):
        return cyrt.checkpoint(lambda y: total(x * y))(x)

    with pytest.raises(TypeError, match="is not an argument of its own"):
        cyrt.grad(f)(values(1.0))


def test_a_rule_refuses_what_is_no_argument():
    def f(w):
        @cyrt.custom_vjp
        def scale(x):
            return x * w

        scale.defvjp(lambda x: (x * w, w), lambda w, g: (g * w,))
        return total(scale(w))

    with pytest.raises(TypeError, match="scale: .* is not an argument of its own"):
        cyrt.grad(f)(values(1.0, 2.0))


def test_arrays_beside_numbers_are_arguments_of_a_rule():
    @cyrt.custom_vjp
    def rounded(nest, mode):
        return cyrt.round(nest["x"]) * nest["n"]

    rounded.defvjp(
        lambda nest, mode: (rounded(nest, mode), nest["n"]),
        lambda n, g: ({"x": g * n, "n": None}, None),
    )
    x = values(1.2, 2.7)
    for n in (3, cyrt.asarray(3.0, dtype="float64")):
        f = cyrt.grad(lambda x, n=n: total(rounded({"x": x, "n": n}, "mode") * x))
        np.testing.assert_allclose(f(x).numpy(), [3 + 3 * 1.2, 9 + 3 * 2.7])
    again = cyrt.checkpoint(lambda nest, flags: total(nest[0] ** nest[1]) * len(flags))
    assert cyrt.grad(lambda x: again((x, 2), {"a", "b"}))(x).tolist() == [4.8, 10.8]


def test_a_rule_is_not_left_out_in_silence():
    """It would be, for arrays that are not arguments."""

    @cyrt.custom_vjp
    def scaled(x):
        return x * own

    scaled.defvjp(lambda x: (scaled(x), None), lambda _, g: (g,))
    x = values(1.2, 2.7)

    def f(x):
        nonlocal own
        own = x * 2.0
        return total(scaled(values(1.0, 1.0)))

    own = x
    assert scaled(x).tolist() == [1.2 * 1.2, 2.7 * 2.7]
    assert cyrt.grad(lambda y: total(y * scaled(values(1.0, 2.0))))(x).tolist() == [1.2, 5.4]
    with pytest.raises(TypeError, match="scaled: .* is not an argument of its own"):
        cyrt.grad(f)(x)


def test_a_gradient_inside_of_a_rule_or_a_checkpoint():
    @cyrt.custom_vjp
    def slope(x):
        return cyrt.grad(lambda y: total(y**3))(x)

    slope.defvjp(lambda x: (slope(x), x), lambda x, g: (g * x * 6.0,))
    again = cyrt.checkpoint(lambda x: cyrt.grad(lambda y: total(y**3))(x))
    for f in (slope, again):
        assert cyrt.grad(lambda x, f=f: total(f(x)))(values(1.0, 2.0)).tolist() == [6.0, 12.0]
    w = values(2.0, 3.0)

    def of_closure(w):
        inner = cyrt.checkpoint(lambda x: cyrt.grad(lambda y: total(y * y * w))(x))
        return total(inner(w))

    with pytest.raises(TypeError, match="is not an argument of its own"):
        cyrt.grad(of_closure)(w)


def test_arguments_of_a_rule():
    """There is a gradient for each parameter, however the call is written."""

    @cyrt.custom_vjp
    def power(x, n=2):
        return x**n

    power.defvjp(lambda x, n: (x**n, (x, n)), lambda kept, g: (g * kept[0] * kept[1], None))
    assert power(values(3.0), n=3).tolist() == [27.0]
    for call in (lambda x: power(x), lambda x: power(x, 2), lambda x: power(n=2, x=x)):
        assert cyrt.grad(lambda x, f=call: total(f(x)))(values(3.0)).tolist() == [6.0]
    with pytest.raises(TypeError, match="only_named: parameters for keywords only"):

        @cyrt.custom_vjp
        def only_named(x, *, n=2):
            return x**n


def test_one_of_several_values_for_an_element_has_the_gradient(emulated):
    """It is the last one on the emulated device, and any on a GPU."""

    def f(v):
        y = cyrt.zeros(3, dtype="float64")
        y[cyrt.asarray([0, 2, 0])] = v
        return total(y * values(2.0, 3.0, 4.0))

    found = cyrt.grad(f)(values(1.0, 1.0, 1.0)).tolist()
    last = [0.0, 4.0, 2.0]
    assert found == last if emulated else found in (last, [2.0, 4.0, 0.0])

    def added(v):
        y = cyrt.zeros(3, dtype="float64")
        cyrt.add.at(y, cyrt.asarray([0, 2, 0]), v)
        return total(y * values(2.0, 3.0, 4.0))

    assert cyrt.grad(added)(values(1.0, 1.0, 1.0)).tolist() == [2.0, 4.0, 2.0]


def test_numbers_beside_arrays_keep_their_digits():
    x = values(0.5)
    wide = cyrt.grad(lambda x: total(cyrt.logaddexp(x, 0.1)))(x).item()
    assert wide == pytest.approx(1 / (1 + np.exp(0.1 - 0.5)), rel=1e-14)
    least = cyrt.asarray([1e-40], dtype="float32")
    zero = cyrt.zeros(1)
    assert cyrt.grad(lambda x: total(x**zero))(least).tolist() == [0.0]


def test_an_array_does_not_become_a_number_in_silence():
    x = values(2.0).reshape(())
    with pytest.raises(TypeError, match="fill_value: .*would become a constant"):
        cyrt.grad(lambda x: total(cyrt.full((2,), x)))(x)
    with pytest.raises(TypeError, match="initial: .*would become a constant"):
        cyrt.grad(lambda x: total(cyrt.sum(cyrt.ones(2), initial=x) * x))(x)
    for copied in (
        lambda x: np.asarray(x),
        lambda x: x.numpy(),
        lambda x: x.get(),
        lambda x: cyrt.asnumpy(x * 2.0),
        lambda x: x.numpy(out=np.empty(())),
        lambda x: x.copy_to(np.empty(())),
        lambda x: np.frombuffer(x.tobytes()),
        lambda x: pickle.loads(pickle.dumps(x * 2.0)).numpy(),
    ):
        with pytest.raises(TypeError, match=r"is a constant.*cyrt.stop_gradient\(x\).numpy\(\)"):
            cyrt.grad(lambda x, f=copied: cyrt.asarray(np.sum(f(x))))(x)


def test_numbers_are_read_while_a_function_is_differentiated(capsys):
    """To print them, and to decide by them."""

    def f(x):
        y = x * x
        print(y[0], f"{y[0]:.1f}", float(y[1]), y.sum().item(), y.tolist())
        assert cyrt.stop_gradient(y).numpy().tolist() == [4.0, 9.0]
        return total(y * y if y[0] > 1 else x)

    assert cyrt.grad(f)(values(2.0, 3.0)).tolist() == [32.0, 108.0]
    assert capsys.readouterr().out == "4.0 4.0 9.0 13.0 [4.0, 9.0]\n"


def test_a_list_of_values_becomes_an_array():
    def f(x):
        found = cyrt.asarray([[x[0] * 2.0, 1], [x[1], x[0] * x[1]]])
        assert (found.shape, found.dtype) == ((2, 2), x.dtype)
        return total(found * cyrt.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=x.dtype))

    assert cyrt.grad(f)(values(3.0, 5.0)).tolist() == [22.0, 15.0]
    beside = cyrt.grad(lambda x: total(cyrt.add(x, [x[0], 2.0])))
    assert beside(values(3.0, 5.0)).tolist() == [2.0, 1.0]
    ones = cyrt.ones(2, dtype="float64")
    assert cyrt.grad(lambda x: total((x[0], x[1]) - ones))(values(3.0, 5.0)).tolist() == [1.0, 1.0]
    narrow = cyrt.grad(lambda x: total(cyrt.asarray([x, x], dtype="float32")))
    assert narrow(values(1.0)).tolist() == [2.0]
    with pytest.raises(ValueError, match="stack: expected arrays of one shape"):
        cyrt.grad(lambda x: total(cyrt.asarray([x, x[:1]])))(values(1.0, 2.0))


def test_a_list_of_values_is_written():
    def f(x):
        y = cyrt.zeros(4, x.dtype)
        y[1:3] = [x[0] * x[1], 7.0]
        y[cyrt.asarray([0, 3])] = (x[1], x[0])
        return total(y * values(1.0, 2.0, 3.0, 4.0))

    value, gradient = cyrt.value_and_grad(f)(values(3.0, 5.0))
    assert value.item() == 5.0 + 2 * 15.0 + 3 * 7.0 + 4 * 3.0
    assert gradient.tolist() == [2 * 5.0 + 4.0, 2 * 3.0 + 1.0]

    def f(x):
        y = cyrt.zeros((2, 2), x.dtype)
        y[:] = [[x[0] * x[1], 7.0], (1.0, x[1])]
        return total(y * values([1.0, 2.0], [3.0, 4.0]))

    assert cyrt.grad(f)(values(3.0, 5.0)).tolist() == [5.0, 3.0 + 4.0]


@pytest.mark.parametrize("name", ["min", "max", "a_min", "a_max"])
@pytest.mark.parametrize("other", [False, True], ids=["constant", "followed"])
@pytest.mark.parametrize("kind", ["array", "list", "nested"])
def test_bounds_that_follow_from_an_argument_have_a_gradient(name, other, kind):
    def f(x):
        bound = {"array": x, "list": [x[0], x[1]], "nested": [(x[0], x[1]), [x[0] * x[1], 9.0]]}
        own = x * 0.0 + 10.0 if other else values(10.0, 10.0)
        return total(cyrt.clip(own if "max" in name else -own, **{name: bound[kind]}))

    expected = [1.0 + 5.0, 1.0 + 3.0] if kind == "nested" else [1.0, 1.0]
    if "max" in name:  # 15 is beyond the array
        expected = [1.0, 1.0]
    assert cyrt.grad(f)(values(3.0, 5.0)).tolist() == expected


def test_an_argument_without_a_gradient_is_found_in_nested_sequences():
    with pytest.raises(TypeError, match="sum: initial: there is no gradient of this argument"):
        cyrt.grad(lambda x: cyrt.sum(x, initial=[[x[0]]]))(values(1.0, 2.0))


def interrupted(function, x, stop):
    """Call a function of x, and raise KeyboardInterrupt before line `stop` of those that cyrt's
    differentiation runs. Return whether there was such a line."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if "autodiff" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        if event == "line":
            lines += 1
            if lines == stop:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(x)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_at_any_line_closes_the_tape():
    x = values(1.0, 2.0)
    second = cyrt.grad(
        lambda x: total(cyrt.vjp(cyrt.checkpoint(cyrt.tanh), x)[1](x * x)[0] * x[:1])
    )
    expected, line = second(x).tolist(), 1
    while interrupted(second, x, line):
        assert tape.num_levels() == 0
        x += 0.0  # it is no argument of a function that is differentiated
        line += 3
    assert line > 50
    assert second(x).tolist() == expected


def test_slices_are_added_into_one_array():
    def f(x):
        found = total(x[0] * x[1:, :1] * x[0])
        for key in (1, -1, (slice(1, 3), 0), [0, 0, 2], (None, 2), slice(None, None, -1)):
            found = found + total(x[key] ** 3)
        return found

    x = cyrt.asarray(np.arange(12.0).reshape(4, 3) / 7)
    gradient = cyrt.grad(f)(x).numpy()
    cube = 3 * x.numpy() ** 2
    expected = cube.copy()
    expected[[1, 3, 2]] += cube[[1, 3, 2]]
    expected[1:3, 0] += cube[1:3, 0]
    expected[[0, 2]] += [2 * cube[0], cube[2]]
    expected[0] += 2 * x.numpy()[0] * x.numpy()[1:, 0].sum()
    expected[1:, 0] += (x.numpy()[0] ** 2).sum()
    np.testing.assert_allclose(gradient, expected)
    second = cyrt.grad(lambda x: total(cyrt.grad(f)(x) * x))(x).numpy()
    np.testing.assert_allclose(second, 3 * expected)


def test_the_gradient_of_a_slice_is_not_added_into_another_array():
    kept = []

    @cyrt.custom_vjp
    def watched(x):
        return x * 1.0

    def backward(_, g):
        kept.append(g)
        return (g,)

    watched.defvjp(lambda x: (watched(x), None), backward)
    x = values(1.0, 2.0)
    found = cyrt.grad(lambda x: total(x[:1] * 5.0) + total(watched(x)) + total(x[1:]))(x)
    assert found.tolist() == [6.0, 2.0]
    assert kept[0].tolist() == [1.0, 1.0]


def test_training_keeps_memory_flat():
    rng = np.random.default_rng(0)
    weights = {"a": cyrt.asarray(rng.standard_normal((6, 5))), "b": cyrt.zeros(5, "float64")}
    x, y = cyrt.asarray(rng.standard_normal((8, 6))), cyrt.zeros((8, 5), "float64")

    def loss(weights):
        hidden = cyrt.tanh(x @ weights["a"] + weights["b"])
        return cyrt.mean((hidden[:, 1:] - y[:, 1:]) ** 2) + cyrt.mean(hidden[:, 0] ** 2)

    optimizer = cyrt.optim.adam(0.01)
    state, step = optimizer.init(weights), cyrt.value_and_grad(loss)
    gc.collect()  # arrays in tracebacks of tests before this one
    used, losses = [], []
    for i in range(60):
        value, gradients = step(weights)
        weights, state = optimizer.update(gradients, state, weights)
        if i % 20 == 19:
            losses.append(value.item())
            used.append(cyrt.memory_stats()["in_use"])
    assert losses == sorted(losses, reverse=True)
    assert used == [used[0]] * len(used)


def test_steps_keep_memory_flat():
    x = cyrt.ones(64)
    f = cyrt.grad(lambda x: total(cyrt.tanh(x * x + x)))
    for _ in range(5):
        f(x)
    cyrt.synchronize()
    gc.collect()  # what earlier tests left
    before = cyrt.memory_stats()["in_use"]
    for _ in range(200):
        f(x)
    cyrt.synchronize()
    assert cyrt.memory_stats()["in_use"] == before


def test_threads_that_call_a_function_for_the_first_time(python):
    """Each makes what is known of the call, and all use what was first: no call holds it."""
    done = python(
        """
        import inspect, sys, threading, time
        import cyrt

        signature = inspect.signature

        def signature_with_a_pause(function):
            time.sleep(0.002)
            return signature(function)

        inspect.signature = signature_with_a_pause
        x, found, start = cyrt.asarray([1.0, 2.0]), [], threading.Barrier(4)

        def work():
            start.wait()
            for _ in range(10):
                gradient = cyrt.grad(lambda z: (cyrt.hypot(z, x) * cyrt.atan2(x, z)).sum())
                found.append(gradient(x).tolist())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(found) == 40 and all(each == found[0] for each in found), found
        """
    )
    assert done.returncode == 0, done.stderr
