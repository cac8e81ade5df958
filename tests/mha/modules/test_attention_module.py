import importlib.util
import json
import struct
import time
from types import SimpleNamespace

import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.modules.encoder import MINILM
from attnlab.mha.modules.safetensors import Tensors

D, M = 12, 3


@pytest.fixture
def parts():
    g = np.random.default_rng(0)
    weights = {name: g.standard_normal((D, D)) / 3 for name in ("query", "key", "value", "out")}
    return weights | {f"{name}_bias": g.standard_normal(D) for name in ("query", "key", "value", "out")}


def bert(parts, prefix=""):
    places = {"query": "self.query", "key": "self.key", "value": "self.value", "out": "output.dense"}
    state = {}
    for name, place in places.items():
        state[f"{prefix}encoder.layer.1.attention.{place}.weight"] = parts[name].T
        state[f"{prefix}encoder.layer.1.attention.{place}.bias"] = parts[f"{name}_bias"]
    return state


def gpt2(parts):
    three = ("query", "key", "value")
    return {
        "transformer.h.1.attn.c_attn.weight": np.hstack([parts[name] for name in three]),
        "transformer.h.1.attn.c_attn.bias": np.concatenate([parts[f"{name}_bias"] for name in three]),
        "transformer.h.1.attn.c_proj.weight": parts["out"],
        "transformer.h.1.attn.c_proj.bias": parts["out_bias"],
    }


def multihead(parts, **more):
    three = ("query", "key", "value")
    return SimpleNamespace(
        in_proj_weight=np.vstack([parts[name].T for name in three]),
        in_proj_bias=np.concatenate([parts[f"{name}_bias"] for name in three]),
        out_proj=SimpleNamespace(weight=parts["out"].T, bias=parts["out_bias"]),
        num_heads=M,
        **more,
    )


def write(path, arrays, kinds):
    header, data = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": kinds[name],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_the_layer_of_a_module_is_its_forward_pass(parts):
    module = mha.from_module(parts, n_heads=M)
    X = np.random.default_rng(1).standard_normal((5, 4, D))
    assert np.abs(module.predict(X) - module.oracle(np.float64)(X)).max() < 1e-12
    assert (module.Theta.shape, module.W.shape, module.rank) == ((M, D, D), (M, D, D), D // M)
    assert np.abs(module.oracle()(X) - module.predict(X)).max() < 1e-4
    causal = module.oracle(np.float64, causal=True)(X)
    assert np.abs(causal[:, -1] - module.predict(X)[:, -1]).max() < 1e-12
    assert np.abs(causal[:, 0] - module.predict(X)[:, 0]).max() > 0.01


def test_every_layout_is_the_same_layer(parts):
    expected = mha.from_module(parts, n_heads=M)
    sources = [
        mha.from_module(bert(parts), n_heads=M, layer=1),
        mha.from_module(bert(parts, "bert."), n_heads=M, layer=1),
        mha.from_module(gpt2(parts), n_heads=M, layer=1),
        mha.from_module(multihead(parts)),
    ]
    for module in sources:
        for name in ("Theta", "W", "c", "c0"):
            assert np.abs(getattr(module, name) - getattr(expected, name)).max() < 1e-12


def test_a_torch_module_is_read(parts):
    torch = pytest.importorskip("torch")
    layer = torch.nn.MultiheadAttention(D, M, batch_first=True).double()
    X = torch.randn(4, 5, D, dtype=torch.float64)
    with torch.no_grad():
        expected = layer(X, X, X, need_weights=False)[0].numpy()
    assert np.abs(mha.from_module(layer).predict(X.numpy()) - expected).max() < 1e-12


def test_a_safetensors_file_is_read_without_torch(parts, tmp_path):
    state = {name: array.astype("<f4") for name, array in bert(parts).items()}
    write(tmp_path / "model.safetensors", state, dict.fromkeys(state, "F32"))
    (tmp_path / "config.json").write_text('{"num_attention_heads": 3}')
    module = mha.from_module(tmp_path / "model.safetensors", layer=1)
    assert module.n_heads == 3
    assert np.abs(module.Theta - mha.from_module(parts, n_heads=M).Theta).max() < 1e-5


def test_half_precisions_and_damage(tmp_path):
    values = np.array([1.0, -2.5, 3.140625], dtype="<f4")
    half = (values.view("<u4") >> 16).astype("<u2")
    path = tmp_path / "a.safetensors"
    write(path, {"b": half, "h": values.astype("<f2"), "i": np.arange(4)}, {"b": "BF16", "h": "F16", "i": "I64"})
    tensors = Tensors(path)
    assert np.array_equal(tensors["b"], values)
    assert np.array_equal(tensors["h"], values)
    assert sorted(tensors) == ["b", "h", "i"]
    assert len(tensors) == 3
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="ends inside i"):
        tensors["i"]
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="not a safetensors file"):
        Tensors(path)


def test_the_reader_agrees_with_the_library(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.random.default_rng(0).standard_normal((3, 4)), "b": np.arange(5, dtype=np.int32)}
    library.save_file(arrays, tmp_path / "x.safetensors")
    ours = Tensors(tmp_path / "x.safetensors")
    assert all(np.array_equal(ours[name], array) for name, array in arrays.items())


def test_a_layer_with_biases_is_a_wider_one_without(parts):
    module = mha.from_module(parts, n_heads=M)
    X = np.random.default_rng(2).standard_normal((3, 4, D))
    wider = np.concatenate([X, np.ones((3, 4, 1))], axis=-1)
    theta, w = np.zeros((M, D + 1, D + 1)), np.zeros((M, D + 1, D))
    theta[:, :D, :D], theta[:, D, :D] = module.Theta, module.c
    w[:, :D], w[:, D] = module.W, module.c0 / M
    assert np.abs(mha.attention(wider, theta, w) - module.predict(X)).max() < 1e-12
    order = [2, 0, 1]
    found = mha.align(
        module.Theta[order], module.W[order], module.Theta, module.W, key_bias=module.c[order], key_bias_ref=module.c
    )
    assert found.theta_error == found.w_error == found.key_bias_error == 0


def test_all_heads_of_a_module_come_back_through_its_oracle(parts):
    module = mha.from_module(parts, n_heads=M)
    learner = mha.QueryLearner(D, n_heads=None, bias=True, rank="auto", random_state=0).fit(module.oracle(np.float64))
    assert learner.n_heads_ == M
    assert learner.separation_["rank"] == D // M
    assert mha.align(learner.theta_, learner.w_, module.Theta, module.W).theta_error < 1e-10


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda p: mha.from_module(p), ValueError, "n_heads must be given"),
        (lambda p: mha.from_module(p, n_heads=5), ValueError, "n_heads=5 does not divide the width 12"),
        (lambda p: mha.from_module({**p, "key": p["key"][:, :4]}, n_heads=3), ValueError, "key must have shape"),
        (lambda p: mha.from_module({**p, "out": p["out"][:4]}, n_heads=3), ValueError, "out must have 12 rows"),
        (
            lambda p: mha.from_module({"x.rotary_emb.inv_freq": 1, **p}),
            NotImplementedError,
            "positions inside attention",
        ),
        (lambda p: mha.from_module({"weight": 1}), ValueError, "no attention layer 0 of BERT"),
        (lambda p: mha.from_module(bert(p), n_heads=3), ValueError, "no attention layer 0"),
        (lambda p: mha.from_module(3), TypeError, "module must be a MultiheadAttention"),
        (lambda p: mha.from_module(multihead(p, bias_k=1)), NotImplementedError, "bias_k and bias_v"),
        (lambda p: mha.from_module(multihead(p, add_zero_attn=True)), NotImplementedError, "add_zero_attn"),
    ],
)
def test_what_is_no_such_layer_is_refused_by_name(change, error, message, parts):
    with pytest.raises(error, match=message):
        change(parts)


needs_minilm = pytest.mark.skipif(importlib.util.find_spec(MINILM) is None, reason="the weights of MiniLM are missing")


SENTENCES = (
    "Attention layers of a language model can be recovered from their answers.",
    "The cat sat on the mat.",
    "Where did the river flood its banks last spring?",
    "She paid the bank in cash, and he did not.",
    "Two and two make four.",
    "Rain fell all night over the old town.",
    "A short proof is not always an easy one.",
    "He read the letter twice before he answered it.",
    "Electrons in a metal move almost freely.",
    "Nobody knew who had opened the door!",
)


def recovered(layer, dtype):
    encoder = mha.Encoder.minilm()
    module = encoder.attention(layer)
    learner = mha.QueryLearner(module.d, n_heads=None, bias=True, rank=32, value_rank=32, extra=12, random_state=layer)
    begun = time.process_time()
    learner.fit(module.oracle(dtype))
    assert time.process_time() - begun < 60
    assert (learner.n_heads_, learner.n_queries_, learner.converged_) == (12, 44862, True)
    found = mha.align(
        learner.theta_, learner.w_, module.Theta, module.W, key_bias=learner.key_bias_, key_bias_ref=module.c
    )
    answered = [
        (learner.predict(X), module.oracle(np.float64)(X)) for X in (encoder.states(s)[layer][None] for s in SENTENCES)
    ]
    left, truth = (
        np.concatenate([part[0] for part in parts]) for parts in zip(*((y - t, t) for y, t in answered), strict=True)
    )
    return found, float(np.sqrt(np.mean(left**2)) / truth.std())


@needs_minilm
def test_the_encoder_has_the_norms_of_the_model():
    encoder = mha.Encoder.minilm()
    assert encoder.pieces("The cat, unhyped!") == ["[CLS]", "the", "cat", ",", "un", "##hy", "##ped", "!", "[SEP]"]
    norms = np.linalg.norm(encoder.attention(0).Theta, axis=(1, 2))
    assert np.allclose(norms, [2.9, 3.8, 12.3, 2.3, 4.6, 4.0, 2.7, 2.2, 1.9, 2.5, 3.1, 2.7], atol=0.051)
    assert np.linalg.norm(encoder.attention(5).c0) == pytest.approx(0.65, abs=0.005)


@needs_minilm
def test_twelve_heads_of_a_language_model():
    found, sentence = recovered(5, np.float64)
    assert max(found.theta_error, found.w_error, found.key_bias_error, sentence) < 1e-9


@needs_minilm
@pytest.mark.slow
@pytest.mark.parametrize("layer", range(6))
def test_all_layers_of_a_language_model(layer):
    found, sentence = recovered(layer, np.float64)
    assert max(found.theta_error, found.w_error, found.key_bias_error, sentence) < 1e-9
    found, sentence = recovered(layer, np.float32)
    assert found.theta_error < 1e-3
    assert sentence < 1e-4
