"""Random programs of arrays, for cyrt's tape and for a reference tape over NumPy.

A program is a list of steps. A step takes values of steps before it, by number, so that values are
shared; it makes a value, a view of one, or writes into one in place. `run` executes it with an
interpreter: cyrt's functions, or `Variable` objects, which are a tape of their own in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHAPE = (3, 4)


@dataclass
class Step:
    name: str
    operands: tuple[int, ...]
    key: Any = None


@dataclass
class Variable:
    """A value of the reference tape: a NumPy array, and how its gradient reaches its parents."""

    value: np.ndarray
    parents: list[tuple[Variable, Any]] = field(default_factory=list)
    gradient: np.ndarray | None = None


def _sum_to(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1 and g.shape[axis] != 1:
            g = g.sum(axis=axis, keepdims=True)
    return g


def _placed(g, shape, key):
    found = np.zeros(shape)
    np.add.at(found, key, g)
    return found


def _cleared(g, key):
    g = g.copy()
    g[key] = 0.0
    return g


UNARY = {
    "tanh": (np.tanh, lambda x, y: 1 - y * y),
    "sin": (np.sin, lambda x, y: np.cos(x)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y)),
    "negative": (np.negative, lambda x, y: -np.ones_like(x)),
    "square": (np.square, lambda x, y: 2 * x),
}
BINARY = {
    "add": (np.add, lambda x, y: np.ones_like(x + y), lambda x, y: np.ones_like(x + y)),
    "subtract": (np.subtract, lambda x, y: np.ones_like(x + y), lambda x, y: -np.ones_like(x + y)),
    "multiply": (np.multiply, lambda x, y: y + 0 * x, lambda x, y: x + 0 * y),
}


class Reference:
    """Operations of `Variable`. Arrays are never written: a write in place makes a new value."""

    def unary(self, name, x):
        function, slope = UNARY[name]
        y = function(x.value)
        return Variable(y, [(x, lambda g: g * slope(x.value, y))])

    def binary(self, name, x, y):
        function, first, second = BINARY[name]
        a, b = x.value, y.value
        return Variable(
            function(a, b),
            [
                (x, lambda g: _sum_to(g * first(a, b), a.shape)),
                (y, lambda g: _sum_to(g * second(a, b), b.shape)),
            ],
        )

    def scale(self, x, factor):
        return Variable(x.value * factor, [(x, lambda g: g * factor)])

    def mean(self, x, axis):
        size = x.value.shape[axis]
        return Variable(
            x.value.mean(axis, keepdims=True),
            [(x, lambda g: np.broadcast_to(g / size, x.value.shape))],
        )

    def matmul(self, x, y):
        a, b = x.value, y.value
        return Variable(a @ b.T, [(x, lambda g: g @ b), (y, lambda g: g.T @ a)])

    def view(self, x, key):
        return Variable(x.value[key], [(x, lambda g: _placed(g, x.value.shape, key))])

    def transpose(self, x):
        return Variable(x.value.T, [(x, lambda g: g.T)])

    def concat(self, x, y):
        rows = x.value.shape[0]
        return Variable(
            np.concatenate([x.value, y.value]), [(x, lambda g: g[:rows]), (y, lambda g: g[rows:])]
        )

    def where(self, x, y):
        chosen = x.value > y.value
        return Variable(
            np.where(chosen, x.value, y.value),
            [(x, lambda g: np.where(chosen, g, 0)), (y, lambda g: np.where(chosen, 0, g))],
        )

    def copy(self, x):
        return Variable(x.value.copy(), [(x, lambda g: g)])

    def write_add(self, x, y):
        return Variable(
            x.value + y.value, [(x, lambda g: g), (y, lambda g: _sum_to(g, y.value.shape))]
        )

    def write(self, x, key, y):
        value = x.value.copy()
        value[key] = y.value
        return Variable(
            value, [(x, lambda g: _cleared(g, key)), (y, lambda g: _sum_to(g[key], y.value.shape))]
        )

    def write_part_add(self, x, key, y):
        value = x.value.copy()
        value[key] += y.value
        return Variable(value, [(x, lambda g: g), (y, lambda g: _sum_to(g[key], y.value.shape))])

    def write_multiply(self, x, y):
        return self.binary("multiply", x, y)

    def write_part_multiply(self, x, key, y):
        a, b = x.value, y.value
        value, factor = a.copy(), np.ones_like(a)
        value[key] *= b
        factor[key] = b
        return Variable(
            value, [(x, lambda g: g * factor), (y, lambda g: _sum_to(g[key] * a[key], b.shape))]
        )

    def total(self, x):
        return Variable(np.sum(x.value), [(x, lambda g: np.broadcast_to(g, x.value.shape))])

    @staticmethod
    def gradients(result, arguments):
        """Return the gradients of arguments: a walk through all values, those made last first."""
        order, seen = [], set()

        def visit(variable):
            stack = [(variable, iter(variable.parents))]
            seen.add(id(variable))
            while stack:
                top, rest = stack[-1]
                for parent, _ in rest:
                    if id(parent) not in seen:
                        seen.add(id(parent))
                        stack.append((parent, iter(parent.parents)))
                        break
                else:
                    order.append(top)
                    stack.pop()

        visit(result)
        result.gradient = np.ones(())
        for each in reversed(order):
            for parent, pull in each.parents:
                g = pull(each.gradient)
                parent.gradient = g if parent.gradient is None else parent.gradient + g
        return [
            np.zeros_like(each.value) if each.gradient is None else np.array(each.gradient)
            for each in arguments
        ]


class Arrays:
    """The same operations of cyrt's arrays. Writes are in place."""

    def __init__(self, cyrt):
        self.cyrt = cyrt

    def unary(self, name, x):
        return getattr(self.cyrt, name)(x)

    def binary(self, name, x, y):
        return getattr(self.cyrt, name)(x, y)

    def scale(self, x, factor):
        return x * factor

    def mean(self, x, axis):
        return x.mean(axis, keepdims=True)

    def matmul(self, x, y):
        return x @ y.T

    def view(self, x, key):
        return x[key]

    def transpose(self, x):
        return x.T

    def concat(self, x, y):
        return self.cyrt.concat([x, y])

    def where(self, x, y):
        return self.cyrt.where(x > y, x, y)

    def copy(self, x):
        return x.copy()

    def write_add(self, x, y):
        x += y
        return x

    def write(self, x, key, y):
        x[key] = y
        return x

    def write_part_add(self, x, key, y):
        x[key] += y
        return x

    def write_multiply(self, x, y):
        x *= y
        return x

    def write_part_multiply(self, x, key, y):
        x[key] *= y
        return x

    def total(self, x):
        return self.cyrt.sum(x)


VIEWS = (
    (slice(1, None),),
    (slice(None), slice(None, None, 2)),
    (0,),
    (slice(None, None, -1), slice(1, 3)),
    ([0, 2, 0],),
    (..., None),
)
WRITES = ((0,), (slice(1, None), slice(None, 2)), (slice(None), 1), (..., slice(None, None, 2)))


class Writer:
    """A generator of programs: it knows each value's shape, and which values may be written."""

    def __init__(self, rng, length):
        self.rng, self.steps = rng, []
        self.shapes = [SHAPE, SHAPE[1:], (3, 1)]  # the arguments
        # A value may be written if no gradient and no view needs it, and its memory is its own.
        self.free: set[int] = set()
        self.readable = [True] * len(self.shapes)
        while len(self.steps) < length:
            self.add()

    def pick(self, fits=lambda shape: True):
        found = [i for i, s in enumerate(self.shapes) if self.readable[i] and fits(s)]
        return int(self.rng.choice(found)) if found else None

    def use(self, *operands):
        """Values that a gradient may need are written no more."""
        self.free -= set(operands)

    def bound(self):
        """Keep products small: only the sine of the last value is read from here on."""
        last = len(self.shapes) - 1
        self.use(last)
        self.readable[last] = False
        self.append("unary", (last,), self.shapes[last], "sin")

    def append(self, name, operands, shape, key=None, fresh=True):
        self.steps.append(Step(name, operands, key))
        self.shapes.append(shape)
        self.readable.append(True)
        if fresh:
            self.free.add(len(self.shapes) - 1)

    def add(self):
        kind = self.rng.choice(
            [
                "unary",
                "binary",
                "scale",
                "mean",
                "matmul",
                "view",
                "transpose",
                "concat",
                "where",
                "copy",
                "write_add",
                "write",
                "write_part_add",
                "write_multiply",
                "write_part_multiply",
            ],
            p=[
                0.15,
                0.14,
                0.05,
                0.05,
                0.05,
                0.1,
                0.04,
                0.03,
                0.05,
                0.08,
                0.06,
                0.05,
                0.05,
                0.05,
                0.05,
            ],
        )
        getattr(self, f"add_{kind}")()

    def add_unary(self):
        x, name = self.pick(), str(self.rng.choice(list(UNARY)))
        self.use(x)
        self.append("unary", (x,), self.shapes[x], name)
        if name in ("tanh", "sigmoid"):
            self.free.discard(len(self.shapes) - 1)  # the gradient needs the result
        if name == "square":
            self.bound()

    def add_binary(self):
        x = self.pick()
        y = self.pick(lambda s: self.broadcasts(s, self.shapes[x]))
        name = str(self.rng.choice(list(BINARY)))
        if name == "multiply":
            self.use(x, y)
        self.append("binary", (x, y), np.broadcast_shapes(self.shapes[x], self.shapes[y]), name)
        if name == "multiply":
            self.bound()

    @staticmethod
    def broadcasts(first, second):
        try:
            return len(np.broadcast_shapes(first, second)) <= 3
        except ValueError:
            return False

    def add_scale(self):
        x = self.pick()
        self.append("scale", (x,), self.shapes[x], float(self.rng.integers(-3, 4)) / 4)

    def add_mean(self):
        x = self.pick(lambda s: len(s) > 0)
        axis = int(self.rng.integers(len(self.shapes[x])))
        shape = list(self.shapes[x])
        shape[axis] = 1
        self.append("mean", (x,), tuple(shape), axis)

    def add_matmul(self):
        x = self.pick(lambda s: len(s) == 2)
        y = self.pick(lambda s: len(s) == 2 and s[1] == self.shapes[x][1])
        self.use(x, y)
        self.append("matmul", (x, y), (self.shapes[x][0], self.shapes[y][0]))
        self.bound()

    def add_view(self):
        x = self.pick(lambda s: len(s) == 2 and s[0] >= 3 and s[1] >= 3)
        key = VIEWS[self.rng.integers(len(VIEWS))]
        self.use(x)  # the view would be out of date
        self.append("view", (x,), np.empty(self.shapes[x])[key].shape, key, fresh=False)

    def add_transpose(self):
        x = self.pick(lambda s: len(s) == 2)
        self.use(x)
        self.append("transpose", (x,), self.shapes[x][::-1], fresh=False)

    def add_concat(self):
        x = self.pick(lambda s: len(s) == 2 and s[0] <= 6)
        y = self.pick(lambda s: len(s) == 2 and s[0] <= 6 and s[1:] == self.shapes[x][1:])
        rows = self.shapes[x][0] + self.shapes[y][0]
        self.append("concat", (x, y), (rows, *self.shapes[x][1:]))

    def add_where(self):
        x = self.pick()
        y = self.pick(lambda s: s == self.shapes[x])
        self.append("where", (x, y), self.shapes[x])

    def add_copy(self):
        x = self.pick()
        self.append("copy", (x,), self.shapes[x])

    def written(self, *operands):
        """The value is a new one from here on; the old one is read no more."""
        x, *_ = operands
        self.readable[x] = False
        self.free.discard(x)

    def target(self, fits=lambda shape: True):
        found = sorted(i for i in self.free if self.readable[i] and fits(self.shapes[i]))
        return int(self.rng.choice(found)) if found else None

    def add_write_add(self, name="write_add"):
        x = self.target()
        if x is None:
            return
        y = self.pick(
            lambda s: (
                self.broadcasts(s, self.shapes[x])
                and np.broadcast_shapes(s, self.shapes[x]) == self.shapes[x]
            )
        )
        if y is None or y == x:
            return
        self.append_write(name, x, y)

    def append_write(self, name, x, y, key=None):
        product = name.endswith("multiply")
        if product:
            self.use(y)
        self.append(name, (x, y), self.shapes[x], key)
        self.written(x)
        if product:
            self.bound()

    def add_write(self, name="write"):
        x = self.target(lambda s: len(s) == 2 and s[0] >= 3 and s[1] >= 2)
        if x is None:
            return
        key = WRITES[self.rng.integers(len(WRITES))]
        part = np.empty(self.shapes[x])[key].shape
        y = self.pick(
            lambda s: (
                len(s) <= len(part)
                and self.broadcasts(s, part)
                and np.broadcast_shapes(s, part) == part
            )
        )
        if y is None or y == x:
            return
        self.append_write(name, x, y, key)

    def add_write_part_add(self):
        self.add_write("write_part_add")

    def add_write_multiply(self):
        self.add_write_add("write_multiply")

    def add_write_part_multiply(self):
        self.add_write("write_part_multiply")


def make(seed, length=None):
    """Return the steps of a program of 5 to 60 operations, and its arguments."""
    rng = np.random.default_rng(seed)
    writer = Writer(rng, int(rng.integers(5, 61)) if length is None else length)
    arguments = [rng.standard_normal(shape) for shape in (SHAPE, SHAPE[1:], (3, 1))]
    used = {each for step in writer.steps for each in step.operands}
    ends = [
        i for i, ok in enumerate(writer.readable) if ok and (i not in used or rng.random() < 0.1)
    ]
    return writer.steps, ends, arguments


def run(steps, ends, arguments, interpreter):
    """Return the program's result: the sum of the values that it ends with, bounded by tanh."""
    values = list(arguments)
    for step in steps:
        operands = [values[i] for i in step.operands]
        if step.name in ("unary", "binary"):
            found = getattr(interpreter, step.name)(step.key, *operands)
        elif step.name.startswith("write_part") or step.name == "write":
            found = getattr(interpreter, step.name)(operands[0], step.key, operands[1])
        elif step.key is None:
            found = getattr(interpreter, step.name)(*operands)
        else:
            found = getattr(interpreter, step.name)(*operands, step.key)
        values.append(found)
    result = None
    for i in ends:
        part = interpreter.total(interpreter.unary("tanh", values[i]))
        result = part if result is None else interpreter.binary("add", result, part)
    return result


def differentiate(cyrt, seed):
    """Return cyrt's value and gradients of a program, as NumPy's arrays."""
    steps, ends, arguments = make(seed)
    function = cyrt.value_and_grad(
        lambda *values: run(steps, ends, values, Arrays(cyrt)), tuple(range(len(arguments)))
    )
    value, gradients = function(*map(cyrt.asarray, arguments))
    return [each.numpy() for each in (value, *gradients)]


def differentiate_by_reference(seed):
    steps, ends, arguments = make(seed)
    variables = [Variable(each) for each in arguments]
    result = run(steps, ends, variables, Reference())
    return [result.value, *Reference.gradients(result, variables)]
