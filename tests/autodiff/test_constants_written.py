"""Arrays that were followed, and that constants overwrite or a closed level leaves."""

import pytest

import cyrt


def overwritten(x):
    """An array of ones that was followed."""
    c = x * x
    one = cyrt.ones(3)
    cyrt.multiply(one, one, out=c)
    return c


def test_views_are_constants():
    def f(x):
        c = overwritten(x)
        into = cyrt.zeros(3)
        cyrt.add.at(into, cyrt.asarray([0]), c[:1])
        view = c[1:]
        view += 1
        return c[:2].sum() + x.sum() + c.reshape(-1)[1:].sum() + into.sum() + view.sum()

    assert cyrt.grad(f)(cyrt.ones(3)).tolist() == [1, 1, 1]


def test_an_array_is_overwritten_twice():
    def f(x):
        c = cyrt.zeros(3)
        c[...] = 2 * x
        cyrt.add(cyrt.zeros(3), 1.0, out=c)
        one = c[:2].sum()
        c[...] = 3 * x
        return one + c.sum() + c[:2].sum()

    value, grad = cyrt.value_and_grad(f)(cyrt.ones(3))
    assert value.item() == 17
    assert grad.tolist() == [6, 6, 3]


@pytest.mark.parametrize("by_view", [True, False])
def test_what_is_written_into_shared_memory_is_not_lost(by_view):
    """A write of values that are followed makes the other arrays of the memory stale."""

    def f(x):
        c = overwritten(x)
        view = c[:2]
        target, other = (view, c) if by_view else (c, view)
        target[...] = x[: len(target)]
        return other.sum()

    with pytest.raises(RuntimeError, match="written through another array"):
        cyrt.grad(f)(cyrt.ones(3))


def test_an_old_view_is_stale():
    def f(x):
        c = x * x
        view = c[:2]
        cyrt.add(cyrt.ones(3), 1.0, out=c)
        return view.sum()

    with pytest.raises(RuntimeError, match="written through another array"):
        cyrt.grad(f)(cyrt.ones(3))


def test_other_parts_of_the_memory_keep_their_gradients():
    def f(x):
        whole = cyrt.zeros(6)
        first, second = whole[:3], whole[3:]
        first[...] = x
        cyrt.add(cyrt.ones(3), 1.0, out=first)
        return whole.sum() + second.sum()

    with pytest.raises(RuntimeError, match="written through another array"):
        cyrt.grad(f)(cyrt.ones(3))


def test_views_of_values_of_a_closed_level():
    def f(x):
        def inner(y):
            squares = y * y
            return squares.sum(), (squares, squares * x)

        _, (constant, followed) = cyrt.value_and_grad(inner, has_aux=True)(cyrt.ones(3))[0]
        return constant[:2].sum() + followed[:2].sum()

    assert cyrt.grad(f)(cyrt.ones(3)).tolist() == [1, 1, 0]
