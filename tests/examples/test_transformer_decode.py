"""The transformer of the examples against NumPy in float64, its checkpoints and its options."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import cyrt

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples"
SCRIPT = FOLDER / "transformer_decode.py"
sys.path.insert(0, str(FOLDER))

import transformer_decode as example  # noqa: E402

TINY = example.SHAPES["tiny"]
GPT = example.Shape(2, 48, 3, 3, 16, 96, 200, positions=64)
SCALING = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def exact(x):
    return x.numpy().astype(np.float64)


def normalized(x, weight, bias, eps):
    if bias is not None:
        x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * exact(weight)
    return x if bias is None else x + exact(bias)


def turned(x, divisors):
    """Rows of heads (H, T, D), from position 0 on."""
    angles = np.arange(x.shape[1])[:, None] / divisors
    low, high = np.split(x, 2, -1)
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.concatenate([low * cosine - high * sine, low * sine + high * cosine], -1)


def forward(model, tokens):
    """The logits (T, vocabulary) of all tokens at once."""
    shape, w = model.shape, model.weights
    learned = shape.positions > 0
    divisors = shape.base ** (np.arange(shape.head // 2) * 2 / shape.head)
    divisors = exact(w["freqs"]) if "freqs" in w else divisors
    x = exact(w["embedding"])[tokens]
    if learned:
        x = x + exact(w["positions"])[: len(tokens)]

    def product(y, layer, name):
        y = y @ exact(layer[name]).T
        return y + exact(layer[f"{name}_bias"]) if learned else y

    for layer in model.layers:
        y = normalized(x, layer["norm_1"], layer.get("norm_1_bias"), shape.eps)
        qkv = product(y, layer, "qkv").reshape(len(tokens), -1, shape.head).swapaxes(0, 1)
        q, k, v = np.split(qkv, [shape.heads, shape.heads + shape.key_heads])
        if not learned:
            q, k = turned(q, divisors), turned(k, divisors)
        k, v = (np.repeat(each, shape.heads // shape.key_heads, 0) for each in (k, v))
        scores = q @ k.swapaxes(1, 2) / np.sqrt(shape.head)
        scores = np.where(np.tri(len(tokens), dtype=bool), scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        y = (powers / powers.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(tokens), -1)
        x = x + product(y, layer, "o")
        y = normalized(x, layer["norm_2"], layer.get("norm_2_bias"), shape.eps)
        if learned:
            y = product(y, layer, "up")
            y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
        else:
            gate, up = np.split(product(y, layer, "gate_up"), 2, -1)
            y = gate / (1 + np.exp(-gate)) * up
        x = x + product(y, layer, "down")
    return normalized(x, w["norm"], w.get("norm_bias"), shape.eps) @ exact(w["head"]).T


def prompt_of(shape, count=20):
    return np.random.default_rng(3).integers(0, shape.vocabulary, count)


@pytest.mark.parametrize("shape", [TINY, GPT], ids=["llama", "gpt2"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("bfloat16", 0.08)])
@pytest.mark.parametrize("on_device", [False, True], ids=["numbers", "positions on the device"])
def test_logits(shape, dtype, tolerance, on_device):
    """At the prompt's end, and behind tokens that come one by one, up to the cache's end."""
    model = example.random_model(shape, dtype)
    tokens, length = prompt_of(shape, 28), 20
    wanted = forward(model, tokens)
    caches = model.caches(len(tokens))
    found = [model.logits(cyrt.asarray(tokens[None, :length]), caches, 0)]
    position = cyrt.full(1, length, dtype=cyrt.int32)
    for i in range(length, len(tokens)):
        place = position if on_device else i
        found.append(model.logits(cyrt.asarray(tokens[None, i : i + 1]), caches, place))
        position += 1
    for i, each in zip(range(length - 1, len(tokens)), found, strict=True):
        assert each.shape == (1, 1, shape.vocabulary)
        assert str(each.dtype) == dtype
        scale = np.abs(wanted[i]).max()
        np.testing.assert_allclose(exact(each)[0, 0], wanted[i], rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("shape", [TINY, GPT], ids=["llama", "gpt2"])
def test_greedy_tokens(shape):
    """Each token is the most likely one behind the text so far, whatever the first number is."""
    model = example.random_model(shape, "float32")
    prompt = prompt_of(shape)
    text, wait = example.generate(model, cyrt.asarray(prompt), 12)
    assert wait() > 0
    found = text.numpy()
    np.testing.assert_array_equal(found[:20], prompt)
    wanted = forward(model, found)
    for i in range(19, 31):
        assert wanted[i, found[i + 1]] >= wanted[i].max() - 1e-4


def test_drawn_tokens_are_of_the_most_likely_ones():
    model = example.random_model(TINY, "float32")
    cyrt.random.seed(5)
    texts = [
        example.generate(model, cyrt.asarray(prompt_of(TINY)), 12, 3)[0].numpy() for _ in range(2)
    ]
    assert (texts[0] != texts[1]).any()
    for text in texts:
        wanted = forward(model, text)
        for i in range(19, 31):
            assert wanted[i, text[i + 1]] >= np.sort(wanted[i])[-3] - 1e-4


TEXT = f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
import numpy as np, cyrt, transformer_decode as example
cyrt.random.seed(1)
model = example.random_model(example.SHAPES["tiny"])
prompt = cyrt.asarray(np.arange(18))
print(example.generate(model, prompt, 40)[0].numpy().tolist())
"""


def test_the_text_is_the_same_without_graphs(python):
    """Equal bits, in the program and in its graphs."""
    texts = []
    for graphs in "0", "1":
        done = python(TEXT, CYRT_GRAPHS=graphs)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert len(json.loads(texts[0])) == 58


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [TINY, GPT], ids=["llama", "gpt2"])
def test_operations_of_a_layer(shape, dtype):
    """One token takes four linear layers, which contain the norms, and attention."""
    model = example.random_model(shape, dtype)
    x, here = cyrt.zeros((1, 1, shape.width), dtype=dtype), cyrt.zeros(1, dtype=cyrt.int32)
    cache = model.caches(4)[0]
    assert example.operations_of(lambda: model.layer(x, model.layers[0], cache, here)) == 5


@pytest.mark.usefixtures("batched", "pooled", "fresh_stream")
@pytest.mark.parametrize("shape", [TINY, GPT], ids=["llama", "gpt2"])
def test_a_token_patches_nothing(shape):
    """A token is the batch of the token before: the same graph, and the same parameters."""
    model = example.random_model(shape)
    caches, encoder = model.caches(64), cyrt.current_encoder()
    token, position = cyrt.asarray([[3]]), cyrt.zeros(1, dtype=cyrt.int32)
    settled = []
    for _ in range(60):
        before = encoder.stats()
        token = example.choose(model.logits(token, caches, position), 0)
        position += 1
        cyrt.commit()
        after = encoder.stats()
        settled.append((after["patched"] - before["patched"], after["misses"] - before["misses"]))
    assert settled[-20:] == [(0, 0)] * 20


@pytest.mark.usefixtures("batched", "pooled")
def test_a_number_as_position_patches_the_attention_alone():
    """On a stream of its own: what ran before on a stream may move a later program's round once."""
    model = example.random_model(TINY)
    token = cyrt.asarray([[3]])
    with cyrt.Stream():
        caches, encoder = model.caches(64), cyrt.current_encoder()
        for i in range(60):
            before = encoder.stats()
            model.logits(token, caches, i)
            cyrt.commit()
            if i >= 40:
                plan = encoder.last_plan()
                names = [plan.names[each] for each in plan.patched]
                assert names == ["cyrt_attention_bfloat16"] * TINY.layers
                assert encoder.stats()["misses"] == before["misses"]


# -- checkpoints ----------------------------------------------------------------------------------


def tensors_of(model):
    """The tensors of a model by Llama's names."""
    shape, w = model.shape, model.weights
    found = {"model.embed_tokens.weight": w["embedding"], "model.norm.weight": w["norm"]}
    rows, shared = shape.heads * shape.head, shape.key_heads * shape.head
    for i, layer in enumerate(model.layers):
        at = f"model.layers.{i}."
        for name, part in {
            "input_layernorm": layer["norm_1"],
            "self_attn.q_proj": layer["qkv"][:rows],
            "self_attn.k_proj": layer["qkv"][rows : rows + shared],
            "self_attn.v_proj": layer["qkv"][rows + shared :],
            "self_attn.o_proj": layer["o"],
            "post_attention_layernorm": layer["norm_2"],
            "mlp.gate_proj": layer["gate_up"][: shape.hidden],
            "mlp.up_proj": layer["gate_up"][shape.hidden :],
            "mlp.down_proj": layer["down"],
        }.items():
            found[f"{at}{name}.weight"] = part
    return found


def config_of(shape, **more):
    return {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head,
        "intermediate_size": shape.hidden,
        "vocab_size": shape.vocabulary,
        "rope_theta": shape.base,
        "rms_norm_eps": shape.eps,
        **more,
    }


def save(folder, tensors, config=None):
    """In two files."""
    names = sorted(tensors)
    for i in range(2):
        part = {name: tensors[name] for name in names[i::2]}
        cyrt.save_safetensors(folder / f"model-{i}.safetensors", part)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("scaling", [None, SCALING], ids=["plain", "llama3"])
def test_checkpoint(tmp_path, tied, scaling):
    shape = example.Shape(3, 32, 4, 1, 8, 40, 100, base=1000.0)
    model = example.random_model(shape, "float32")
    tensors = tensors_of(model)
    if not tied:
        model.weights["head"] = cyrt.random.normal(shape=(100, 32))
        tensors["lm_head.weight"] = model.weights["head"]
    save(tmp_path, tensors, config_of(shape, **({"rope_scaling": scaling} if scaling else {})))
    loaded = example.load_model(tmp_path, TINY)
    assert loaded.shape == shape
    tokens = prompt_of(shape, 40)
    if scaling:
        # Short waves stay, long ones are slowed down by the factor, those between by less.
        plain = 1000.0 ** (np.arange(4) / 4)
        slowed = exact(loaded.weights["freqs"]) / plain
        np.testing.assert_allclose(slowed[[0, 3]], [1, 32], rtol=1e-6)
        assert 1 < slowed[1] < slowed[2] <= 32
        model.weights["freqs"] = loaded.weights["freqs"]
    found = loaded.logits(cyrt.asarray(tokens[None]), loaded.caches(40), 0)
    wanted = forward(model, tokens)[-1]
    np.testing.assert_allclose(exact(found)[0, 0], wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"model.layers.1.mlp.up_proj.weight": None},
            ValueError,
            r"layers\.1\.mlp\.up_proj\.weight is missing, of shape \(128, 64\)",
        ),
        (
            {"model.layers.0.self_attn.k_proj.weight": ((64, 64), "bfloat16")},
            ValueError,
            r"k_proj\.weight: expected shape \(32, 64\), got \(64, 64\)",
        ),
        (
            {"model.norm.weight": ((64,), "float32")},
            TypeError,
            r"model\.norm\.weight: expected bfloat16, .* got float32",
        ),
        ({"model.embed_tokens.weight": ((256, 64), "int32")}, TypeError, "float32, got int32"),
        ({"lm_head.weight": ((255, 64), "bfloat16")}, ValueError, r"lm_head.* got \(255, 64\)"),
    ],
)
def test_wrong_checkpoints(tmp_path, change, error, message):
    tensors = tensors_of(example.random_model(TINY))
    for name, changed in change.items():
        tensors.pop(name, None)
        if changed is not None:
            tensors[name] = cyrt.ones(changed[0], dtype=changed[1])
    save(tmp_path, tensors)
    with pytest.raises(error, match=message):
        example.load_model(tmp_path, TINY)


def test_wrong_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file \*\.safetensors"):
        example.load_model(tmp_path, TINY)
    save(tmp_path, tensors_of(example.random_model(TINY)), {"hidden_size": 64})
    with pytest.raises(ValueError, match=r"config\.json: there is no 'num_attention_heads'"):
        example.load_model(tmp_path, TINY)
    save(tmp_path, {"x": cyrt.ones(1)}, config_of(TINY, rope_scaling={"type": "yarn"}))
    with pytest.raises(ValueError, match="embed_tokens.weight is missing"):
        example.load_model(tmp_path, TINY)
    save(
        tmp_path, tensors_of(example.random_model(TINY)), config_of(TINY, rope_scaling={"type": 1})
    )
    with pytest.raises(ValueError, match="rope_scaling: expected the type llama3, got 1"):
        example.load_model(tmp_path, TINY)


# -- the command ----------------------------------------------------------------------------------


def test_command(tmp_path, capsys):
    example.main(["--shape", "tiny", "--tokens", "20"])
    printed = capsys.readouterr().out
    assert "2 layers of width 64, 4 heads over 2, vocabulary 256, bfloat16" in printed
    assert "% of a copy's" in printed
    assert "5 operations a layer" in printed
    save(tmp_path, tensors_of(example.random_model(TINY)))
    options = ["--shape", "tiny", "--tokens", "3", "--top-k", "4"]
    example.main([*options, "--checkpoint", str(tmp_path)])
    assert "tokens 32 to 35: [" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tokens", "0"], "--tokens from 1"),
        (["--shape", "tiny", "--top-k", "257"], "--top-k from 0 to 256"),
        (["--shape", "gpt2", "--tokens", "1000"], "1024 positions at most"),
        (["--shape", "other"], "invalid choice: 'other'"),
        (["--checkpoint", "nowhere"], "nowhere: there is no file"),
    ],
)
def test_wrong_options(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        example.main(arguments)
    assert message in str(error.value) + capsys.readouterr().err
