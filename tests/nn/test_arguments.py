"""What all functions of cyrt.nn refuse, and how their errors name it."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path

import pytest

import cyrt
from cyrt import nn
from cyrt.ops.elementwise import Elementwise


def ones(*shape, dtype="float32"):
    return cyrt.ones(shape, dtype=dtype)


def convolutions(ndim):
    """Calls of the functions of so many spatial dimensions."""
    x, w, sizes = ones(2, *(5,) * ndim, 4), ones(6, *(3,) * ndim, 4), (3,) * ndim
    g = ones(2, *sizes, 6)
    return {
        f"conv{ndim}d": {"x": x, "weight": w},
        f"conv_transpose{ndim}d": {"x": x, "weight": w},
        "conv_general": {"x": x, "weight": w},
        "conv_input_vjp": {"g": g, "input_shape": x.shape, "weight": w},
        "conv_weight_vjp": {"g": g, "x": x, "weight_shape": w.shape},
        "max_pool": {"x": x, "kernel_size": 3, "stride": 1},
        "avg_pool": {"x": x, "kernel_size": 3, "stride": 1},
        "max_pool_vjp": {"g": ones(2, *sizes, 4), "x": x, "kernel_size": 3, "stride": 1},
        "avg_pool_vjp": {"g": ones(2, *sizes, 4), "x": x, "kernel_size": 3, "stride": 1},
    }


# What they take, those of cyrt.ops take; softplus, too.
ELSEWHERE = {
    *(each for each in nn.__all__ if isinstance(getattr(nn, each), Elementwise)),
    *("logsumexp", "softplus", "softplus_vjp"),
}


def takes_x_alone(name):
    """Whether a function needs no more than one operand, x."""
    parameters = inspect.signature(getattr(nn, name)).parameters.values()
    return [each.name for each in parameters if each.default is each.empty] == ["x"]


def calls():
    """The arguments of a call of each function that has more than operands."""
    x, w, q, k = ones(3, 8), ones(8), ones(2, 4, 3, 8), ones(2, 2, 3, 8)
    targets = cyrt.zeros(3, dtype="int32")
    key, image = cyrt.random.key(1), ones(2, 3, 3, 8)
    running = {"running_mean": w, "running_var": w}
    small, large = {"x": image, "size": 2}, {"x": image, "scale_factor": 2, "mode": "bilinear"}
    losses = {f"{name}_loss": {"x": x, "targets": x} for name in ("mse", "l1", "huber")} | {
        "binary_cross_entropy": {"x": 0.5 * x, "targets": x}
    }
    return {
        **{name: {"x": x} for name in nn.__all__ if name not in ELSEWHERE and takes_x_alone(name)},
        **losses,
        **{f"{name}_vjp": {"g": ones(), **call} for name, call in losses.items()},
        "leaky_relu_vjp": {"g": x, "x": x},
        "elu_vjp": {"g": x, "x": x},
        "glu_vjp": {"g": ones(3, 4), "x": x},
        "dropout": {"x": x, "key": key},
        "dropout_vjp": {"g": x, "x": x, "key": key},
        "embedding": {"x": targets, "weight": x},
        "embedding_vjp": {"g": x, "x": targets, "weight": x},
        "one_hot": {"x": targets, "num_classes": 5},
        "batch_norm": {"x": x, **running, "weight": w, "bias": w},
        "batch_norm_vjp": {"g": x, "x": x, **running, "weight": w, "bias": w},
        "group_norm": {"x": x, "num_groups": 2, "weight": w, "bias": w},
        "group_norm_vjp": {"g": x, "x": x, "num_groups": 2, "weight": w, "bias": w},
        "instance_norm": {"x": x, "weight": w, "bias": w},
        "instance_norm_vjp": {"g": x, "x": x, "weight": w, "bias": w},
        "interpolate": small,
        "interpolate_vjp": {"g": ones(2, 6, 6, 8), **large},
        "layer_norm": {"x": x, "weight": w, "bias": w},
        "layer_norm_vjp": {"g": x, "x": x, "weight": w, "bias": w},
        "rms_norm": {"x": x, "weight": w},
        "rms_norm_vjp": {"g": x, "x": x, "weight": w},
        "softmax_vjp": {"g": x, "y": x},
        "log_softmax_vjp": {"g": x, "y": x},
        "logsumexp_vjp": {"g": ones(3), "x": x, "axis": 1},
        "cross_entropy": {"logits": x, "targets": targets},
        "cross_entropy_vjp": {"g": ones(3), "logits": x, "targets": targets},
        "swiglu_vjp": {"g": x, "gate": x, "up": x},
        "linear": {"x": x, "weight": ones(8, 8), "bias": w, "residual": x},
        "linear_vjp": {"g": x, "x": x, "weight": ones(8, 8), "bias": w},
        "rope": {"x": q, "dims": 8, "freqs": ones(4)},
        "rope_vjp": {"g": q, "dims": 8, "freqs": ones(4)},
        "attention": {
            **{"q": q, "k": k, "v": k, "sinks": ones(4), "mask": ones(3, 3)},
            "rope": {"dims": 8},
        },
        "attention_vjp": {"g": q, "q": q, "k": k, "v": k, "mask": ones(3, 3)},
        **convolutions(1),
        **convolutions(2),
        **convolutions(3),
    }


BOOLS = ("donate", "flip", "precise", "traditional", "training", "with_logits")
INTS = (
    *("axis", "dims", "offset", "stride", "padding", "dilation"),
    *("input_dilation", "output_padding", "groups", "kernel_size", "position"),
    *("num_groups", "num_classes"),
)
NUMBERS = ("eps", "base", "scale", "p", "momentum", "delta", "alpha", "negative_slope")
OPERANDS = {
    name: [each for each, value in arguments.items() if isinstance(value, cyrt.Array)]
    for name, arguments in calls().items()
}


def arguments_of(kind):
    return [
        (name, argument)
        for name in calls()
        for argument in inspect.signature(getattr(nn, name)).parameters
        if argument in kind
    ]


def test_every_function_is_called():
    assert set(nn.__all__) - set(calls()) == ELSEWHERE


@pytest.mark.parametrize("name", [each for each in nn.__all__ if each.endswith("_vjp")])
def test_gradients_take_g_and_then_the_arguments_of_the_forward(name):
    """In its order, and with its defaults; what stands for an argument is at its place."""
    forward = "conv_general" if name.startswith("conv_") else name.removesuffix("_vjp")
    stands_for = {"y": "x", "input_shape": "x", "weight_shape": "weight"}
    wanted = inspect.signature(getattr(nn, forward)).parameters
    first, *others = inspect.signature(getattr(nn, name)).parameters.values()
    others = [each for each in others if each.name != "donate"]
    assert first.name == "g"
    order = [list(wanted).index(stands_for.get(each.name, each.name)) for each in others]
    assert order == sorted(order)
    for each, place in zip(others, order, strict=True):
        assert each.default == list(wanted.values())[place].default


@pytest.mark.parametrize("value", ["a", 1, None, [True]], ids=repr)
@pytest.mark.parametrize(("name", "argument"), arguments_of(BOOLS))
def test_bools_are_bools(name, argument, value):
    message = f"{name}: {argument}: expected a bool, got {type(value).__name__}"
    with pytest.raises(TypeError, match=message):
        getattr(nn, name)(**calls()[name] | {argument: value})


@pytest.mark.parametrize(("name", "argument"), arguments_of(INTS + NUMBERS))
def test_bools_are_no_numbers(name, argument):
    with pytest.raises(TypeError, match=rf"({name}: )?{argument}: expected an? .*(bool|True)"):
        getattr(nn, name)(**calls()[name] | {argument: True})


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_bools_are_no_sizes(ndim):
    for name, arguments in convolutions(ndim).items():
        function = getattr(nn, name)
        for each in ("stride", "padding", "dilation", "kernel_size", "input_shape"):
            if each in inspect.signature(function).parameters:
                sizes = (True,) * (ndim + 2 if each == "input_shape" else ndim)
                with pytest.raises(TypeError, match=f"{name}: {each}: expected .*True"):
                    function(**arguments | {each: sizes})


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_that_are_none(name):
    """An optional one is left out; another one is refused by its name."""
    function = getattr(nn, name)
    optional = [
        each
        for each, parameter in inspect.signature(function).parameters.items()
        if parameter.default is None
    ]
    for count in (1, 2):
        for some in itertools.combinations(OPERANDS[name], count):
            call = calls()[name] | dict.fromkeys(some)
            if set(some) <= set(optional):
                found = function(**call)
                for each in found if isinstance(found, tuple) else (found,):
                    assert each is None or each.numpy().size
            else:
                message = f"{name}: ({'|'.join(some)}): expected an Array, got NoneType"
                with pytest.raises(TypeError, match=message):
                    function(**call)


def test_operands_on_another_device_are_named(python):
    """Each operand but the first one, and what is no operand: outputs, frequencies, caches."""
    done = python(
        """
        import cyrt
        from cyrt import nn
        from test_arguments import calls, ones

        def refused(name, argument, call):
            try:
                getattr(nn, name)(**call)
            except ValueError as error:
                text = str(error)
                wanted = f"{name}: {argument}: expected an array on device 0, got one on device 1"
                if not text.startswith(wanted):
                    print(name, argument, text)
            else:
                print(name, argument, "is not refused")

        for name, call in calls().items():
            operands = [key for key, each in call.items() if isinstance(each, cyrt.Array)]
            if name != "rope_vjp":
                operands.sort(key=lambda each: each == "g")  # g is compared with the inputs
            for other in operands[1:]:
                refused(name, other, call | {other: cyrt.to_device(call[other], 1)})
            if name in ("layer_norm", "rms_norm", "softmax", "log_softmax", "rope"):
                shape = call["x"].shape
                refused(name, "out", call | {"out": cyrt.zeros(shape, device=1)})
        new = ones(2, 2, 3, 8)
        call = {"q": ones(2, 4, 3, 8), "k": new, "v": new, "position": 0}
        cache = ones(2, 2, 9, 8), ones(2, 2, 9, 8)
        away = [cyrt.to_device(each, 1) for each in cache]
        refused("attention", "cache: keys", call | {"cache": (away[0], cache[1])})
        refused("attention", "cache: values", call | {"cache": (cache[0], away[1])})
        at = cyrt.zeros(2, dtype="int32", device=1)
        refused("attention", "position", call | {"cache": cache, "position": at})
        refused("rope", "offset", {"x": new, "dims": 8, "offset": at})
        """,
        folders=[Path(__file__).parent],
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="2",
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr


def test_a_floating_point_type_without_a_kernel_is_refused_first(python):
    done = python(
        """
        import sys
        from importlib.machinery import PathFinder

        class Finder(PathFinder):
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                spec = super().find_spec(name, path, target)
                if name == "cyrt.builtin.rows.norm":
                    execute = spec.loader.exec_module
                    def exec_module(module):
                        execute(module)
                        module.TYPES = ("float16", "bfloat16", "float32")
                    spec.loader.exec_module = exec_module
                return spec

        sys.meta_path.insert(0, Finder)
        import cyrt
        try:
            cyrt.nn.rms_norm(cyrt.zeros((2, 4), cyrt.float64), cyrt.zeros(3, cyrt.float64))
        except TypeError as error:
            print(error)
    """,
        fresh=True,
    )
    assert (
        done.stdout
        == "rms_norm has no kernel for float64; it has kernels for float16, bfloat16, float32\n"
    )
