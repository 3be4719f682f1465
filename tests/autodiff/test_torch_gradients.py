"""Gradients beside PyTorch's, in float64."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape)


def positive(*shape):
    return RNG.uniform(0.3, 2.0, shape)


EDGES = np.array([-4.0, -3.0, -0.5, 0.0, 0.5, 3.0, 4.0])
ROWS = np.array([[1, 0, 3], [3, 3, 1]])
CASES: dict[str, list] = {}


def case(name, ours, theirs, *arrays):
    CASES.setdefault(name, []).append((ours, theirs, arrays))


def torch_first(function):
    """A function of PyTorch, whose channels are the second dimension, with the channels last."""

    def called(x, *others, **settings):
        return function(x.movedim(-1, 1), *others, **settings).movedim(1, -1)

    return called


def filters(weight):
    return weight.movedim(-1, 1)


# -- activations -----------------------------------------------------------------------------------

for _name, _theirs, _settings in (
    ("relu", F.relu, {}),
    ("gelu", F.gelu, {}),
    ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), {}),
    ("silu", F.silu, {}),
    ("selu", F.selu, {}),
    ("hardswish", F.hardswish, {}),
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.2), {"negative_slope": 0.2}),
    ("elu", lambda x: F.elu(x, 0.7), {"alpha": 0.7}),
    ("softplus", lambda x: F.softplus(x, 2.0, 1e9), {"beta": 2.0}),
    ("sigmoid", torch.sigmoid, {}),
    ("tanh", torch.tanh, {}),
):
    _f = getattr(nn, _name)
    case(_name, lambda x, f=_f, s=_settings: f(x, **s), _theirs, normal(4, 5))
    case(_name, lambda x, f=_f, s=_settings: f(x, **s), _theirs, EDGES)
case("glu", nn.glu, F.glu, normal(3, 8))
case("swiglu", nn.swiglu, lambda a, b: F.silu(a) * b, normal(3, 4), normal(3, 4))

# -- layers ----------------------------------------------------------------------------------------

for _axis in (-1, 0):
    for _name in ("softmax", "log_softmax"):
        _f, _g = getattr(nn, _name), getattr(F, _name)
        case(
            _name,
            lambda x, f=_f, a=_axis: f(x, axis=a),
            lambda x, f=_g, a=_axis: f(x, a),
            normal(4, 6),
        )
case("logsumexp", lambda x: nn.logsumexp(x, 1), lambda x: torch.logsumexp(x, 1), normal(4, 6))
case(
    "layer_norm",
    nn.layer_norm,
    lambda x, w, b: F.layer_norm(x, (6,), w, b),
    normal(3, 4, 6),
    normal(6),
    normal(6),
)
case("rms_norm", nn.rms_norm, lambda x, w: F.rms_norm(x, (6,), w, 1e-5), normal(3, 6), normal(6))
case(
    "group_norm",
    lambda x, w, b: nn.group_norm(x, 2, w, b),
    torch_first(lambda x, w, b: F.group_norm(x, 2, w, b)),
    normal(3, 5, 4),
    normal(4),
    normal(4),
)
case(
    "instance_norm",
    nn.instance_norm,
    torch_first(lambda x, w: F.instance_norm(x, weight=w)),
    normal(3, 5, 4),
    normal(4),
)
for _training in (True, False):
    case(
        "batch_norm",
        lambda x, w, b, t=_training: nn.batch_norm(
            x, cyrt.zeros(3, "float64"), cyrt.ones(3, "float64"), w, b, training=t
        ),
        torch_first(
            lambda x, w, b, t=_training: F.batch_norm(
                x, torch.zeros(3).double(), torch.ones(3).double(), w, b, t
            )
        ),
        normal(4, 5, 3),
        normal(3),
        normal(3),
    )
for _activation, _theirs in (("relu", F.relu), ("gelu", F.gelu), (None, lambda x: x)):
    case(
        "linear",
        lambda x, w, b, a=_activation: nn.linear(x, w, b, a),
        lambda x, w, b, f=_theirs: f(F.linear(x, w, b)),
        normal(3, 2, 6),
        normal(8, 6),
        normal(8),
    )
_MASK = np.arange(30).reshape(5, 6) % 4 > 0
for _mask, _settings in (
    (None, {}),
    ("causal", {"is_causal": True}),
    (cyrt.asarray(_MASK), {"attn_mask": torch.tensor(_MASK)}),
):
    _keys = 5 if isinstance(_mask, str) else 6
    case(
        "attention",
        lambda q, k, v, m=_mask: nn.attention(q, k, v, mask=m),
        lambda q, k, v, s=_settings: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **s),
        normal(2, 4, 5, 8),
        normal(2, 2, _keys, 8),
        normal(2, 2, _keys, 8),
    )
case(
    "attention",
    lambda q, k, v, m: nn.attention(q, k, v, mask=m),
    lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    *(normal(1, 2, 5, 4) for _ in range(3)),
    normal(5, 5),
)
case(
    "embedding",
    lambda w: nn.embedding(cyrt.asarray(ROWS), w),
    lambda w: F.embedding(torch.tensor(ROWS), w),
    normal(4, 5),
)

# -- windows ---------------------------------------------------------------------------------------

for _n, _spatial in ((1, (9,)), (2, (6, 5)), (3, (4, 3, 4))):
    _f, _g = getattr(nn, f"conv{_n}d"), getattr(F, f"conv{_n}d")
    for _settings in ({}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2, "groups": 2}):
        _channels = 4 // _settings.get("groups", 1)
        case(
            f"conv{_n}d",
            lambda x, w, b, f=_f, s=_settings: f(x, w, bias=b, **s),
            torch_first(lambda x, w, b, f=_g, s=_settings: f(x, filters(w), b, **s)),
            normal(2, *_spatial, 4),
            normal(6, *(2,) * _n, _channels),
            normal(6),
        )
    _f, _g = getattr(nn, f"conv_transpose{_n}d"), getattr(F, f"conv_transpose{_n}d")
    case(
        f"conv_transpose{_n}d",
        lambda x, w, f=_f: f(x, w, stride=2, padding=1),
        # PyTorch's filters have the input's channels first.
        torch_first(lambda x, w, f=_g: f(x, w.movedim(-1, 0), stride=2, padding=1)),
        normal(2, *_spatial, 4),
        normal(3, *(2,) * _n, 4),
    )
    _f, _g = getattr(F, f"max_pool{_n}d"), getattr(F, f"avg_pool{_n}d")
    case(
        "max_pool",
        lambda x: nn.max_pool(x, 2, 2, 1),
        torch_first(lambda x, f=_f: f(x, 2, 2, 1)),
        normal(2, *_spatial, 3),
    )
    case(
        "avg_pool",
        lambda x: nn.avg_pool(x, 2, 1),
        torch_first(lambda x, f=_g: f(x, 2, 1)),
        normal(2, *_spatial, 3),
    )
case(
    "max_pool",
    lambda x: nn.max_pool(x, 3, 2, 1),
    torch_first(lambda x: F.max_pool1d(x, 3, 2, 1)),
    np.array([1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.0]).reshape(1, 7, 1),
)
for _mode in ("nearest", "bilinear"):
    case(
        "interpolate",
        lambda x, m=_mode: nn.interpolate(x, (5, 7), mode=m),
        torch_first(lambda x, m=_mode: F.interpolate(x, (5, 7), mode=m)),
        normal(2, 3, 4, 2),
    )

# -- losses ----------------------------------------------------------------------------------------

for _reduction in ("none", "sum", "mean"):
    for _name, _theirs, _settings in (
        ("mse_loss", F.mse_loss, {}),
        ("l1_loss", F.l1_loss, {}),
        ("huber_loss", F.huber_loss, {"delta": 0.7}),
    ):
        _f = getattr(nn, _name)
        case(
            _name,
            lambda x, t, f=_f, r=_reduction, s=_settings: f(x, t, r, **s),
            lambda x, t, f=_theirs, r=_reduction, s=_settings: f(x, t, reduction=r, **s),
            normal(5, 3),
            normal(5, 3),
        )
    case(
        "binary_cross_entropy",
        lambda x, t, r=_reduction: nn.binary_cross_entropy(x, t, r, with_logits=True),
        lambda x, t, r=_reduction: F.binary_cross_entropy_with_logits(x, t, reduction=r),
        normal(5, 3),
        positive(5, 3) / 2,
    )
    case(
        "binary_cross_entropy",
        lambda x, r=_reduction: nn.binary_cross_entropy(x, cyrt.zeros((5, 3), "float64") + 0.3, r),
        lambda x, r=_reduction: F.binary_cross_entropy(
            x, torch.full((5, 3), 0.3, dtype=torch.float64), reduction=r
        ),
        positive(5, 3) / 2.1,
    )
case(
    "cross_entropy",
    lambda x: nn.cross_entropy(x, cyrt.asarray(ROWS), axis=1),
    lambda x: F.cross_entropy(x, torch.tensor(ROWS), reduction="none"),
    normal(2, 4, 3),
)

# -- reductions and scans --------------------------------------------------------------------------

for _axis in (1, (0, 2)):
    for _name, _theirs in (
        ("sum", torch.sum),
        ("mean", torch.mean),
        ("logsumexp", torch.logsumexp),
        ("var", lambda x, a: torch.var(x, a, correction=0)),
        ("std", lambda x, a: torch.std(x, a, correction=0)),
    ):
        _f = getattr(cyrt, _name)
        case(
            _name,
            lambda x, f=_f, a=_axis: f(x, a),
            lambda x, f=_theirs, a=_axis: f(x, a),
            normal(2, 3, 4),
        )
case("max", lambda x: cyrt.max(x, 1), lambda x: torch.max(x, 1)[0], normal(3, 4))
case("min", lambda x: cyrt.min(x, 1), lambda x: torch.min(x, 1)[0], normal(3, 4))
case("prod", lambda x: cyrt.prod(x, 1), lambda x: torch.prod(x, 1), normal(3, 4))
case("prod", cyrt.prod, torch.prod, np.array([2.0, 0.0, 3.0]))
case(
    "cumulative_sum", lambda x: cyrt.cumulative_sum(x, axis=1), lambda x: x.cumsum(1), normal(3, 4)
)
case(
    "cumulative_prod",
    lambda x: cyrt.cumulative_prod(x, axis=1),
    lambda x: x.cumprod(1),
    normal(3, 4),
)
case(
    "cumulative_prod",
    cyrt.cumulative_prod,
    lambda x: x.cumprod(0),
    np.array([2.0, 0.0, 3.0, 0.0, 1.0]),
)

# -- indexing, and elementwise functions at their edges --------------------------------------------

for _key in (
    (slice(1, None), slice(None, None, 2)),
    (0,),
    ([0, 2, 0],),
    ([0, 1, 1], [2, 2, 2]),
    (slice(None), [3, 1, 3]),
    (..., None, 1),
):
    case("getitem", lambda x, k=_key: x[k], lambda x, k=_key: x[k], normal(3, 4))
case("getitem", lambda x: x[x > 0], lambda x: x[x > 0], normal(3, 4))
case(
    "take_along_axis",
    lambda x: cyrt.take_along_axis(x, cyrt.asarray(ROWS), 1),
    lambda x: torch.gather(x, 1, torch.tensor(ROWS)),
    normal(2, 4),
)
case("sort", lambda x: cyrt.sort(x, 1), lambda x: torch.sort(x, 1)[0], normal(3, 5))
case("top_k", lambda x: cyrt.top_k(x, 2)[0], lambda x: torch.topk(x, 2)[0], normal(3, 5))
case("abs", cyrt.abs, torch.abs, EDGES)
case("clip", lambda x: cyrt.clip(x, -3.0, 3.0), lambda x: torch.clip(x, -3.0, 3.0), EDGES)
case("maximum", cyrt.maximum, torch.maximum, EDGES, EDGES[::-1].copy())
case("minimum", cyrt.minimum, torch.minimum, EDGES, EDGES[::-1].copy())
case("pow", cyrt.pow, torch.pow, positive(3, 4), normal(4))
case("atan2", cyrt.atan2, torch.atan2, normal(5), normal(5))
case("logaddexp", cyrt.logaddexp, torch.logaddexp, EDGES, EDGES)
case("matmul", cyrt.matmul, torch.matmul, normal(5, 3, 4), normal(4, 2))
case(
    "einsum",
    lambda x, y: cyrt.einsum("bij,bjk->ik", x, y),
    lambda x, y: torch.einsum("bij,bjk->ik", x, y),
    normal(2, 3, 4),
    normal(2, 4, 5),
)


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradients_are_those_of_torch(name):
    for ours, theirs, arrays in CASES[name]:
        tensors = [torch.tensor(each, requires_grad=True) for each in arrays]
        wanted = theirs(*tensors)
        weight = np.random.default_rng(1).standard_normal(tuple(wanted.shape))
        (wanted * torch.tensor(weight)).sum().backward()
        value, gradients = cyrt.value_and_grad(
            lambda *args, f=ours, w=weight: cyrt.sum(f(*args) * cyrt.asarray(w)),
            tuple(range(len(arrays))),
        )(*map(cyrt.asarray, arrays))
        np.testing.assert_allclose(
            value.item(), (wanted.detach().numpy() * weight).sum(), rtol=1e-9, atol=1e-9
        )
        for gradient, tensor in zip(gradients, tensors, strict=True):
            np.testing.assert_allclose(gradient.numpy(), tensor.grad.numpy(), rtol=1e-9, atol=1e-11)


def test_every_network_function_is_compared():
    functions = {name for name in nn.__all__ if not name.endswith("_vjp")}
    # PyTorch has no function of these, or draws other random numbers.
    others = {"conv_general", "dropout", "one_hot", "rope"}
    assert functions - CASES.keys() == others
