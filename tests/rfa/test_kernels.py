import jax
import numpy as np
import pytest

from attnlab.common.gaussian import bivariate_normal_cdf, bivariate_normal_pdf, normal_cdf, normal_pdf
from attnlab.common.precision import float64
from attnlab.rfa.activations import ACTIVATIONS, Exponential, Relu, as_activation
from attnlab.rfa.activations.relu import biased_relu_pairs, relu_pairs
from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, MLPFeatures, PatchFeatures
from attnlab.rfa.kernels import _side, _tile, kernel
from attnlab.rfa.series import relu_coefficients, relu_covariance, relu_hermite
from attnlab.rfa.sets import pad
from attnlab.rfa.task import Task

# One block of heads: a larger number would only average over more of them.
N_DRAWS, HEADS = 20, 128


def check(make_map, X, exact):
    """Finite-head kernels deviate from the exact one by their own standard error.

    Entries of one Gram matrix share their heads and are strongly correlated, so the examples are split into groups with
    independent heads before the root mean square is formed.
    """
    device = Blas("float64")
    z = []
    for group, x in enumerate(np.split(X, len(X) // 3)):
        corner = np.tril_indices(len(x))
        draws = []
        for seed in range(N_DRAWS):
            blocks = list(Features(make_map(1000 * group + seed), device.put(x), device))
            draws.append(sum(b @ b.T for b in blocks)[corner])
        error = np.std(draws, axis=0, ddof=1) / np.sqrt(N_DRAWS)
        z.append((np.mean(draws, axis=0) - exact(x)[corner]) / error)
    # Student's t with 19 degrees of freedom: rms 1.06, and 4.5 is beyond 1 in 2000
    assert np.abs(z).max() < 4.5
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.5


@pytest.mark.parametrize("name", [name for name, kind in ACTIVATIONS.items() if kind().has_kernel])
@pytest.mark.parametrize("bias", [None, "identity"])
def test_attention_kernels_are_the_limit_of_features(name, bias):
    X = Task(d=6, n_keys=5).sample(36, seed=4)[0]
    activation, W0 = as_activation(name), mean_matrix(bias, 6)
    check(
        lambda seed: AttentionFeatures(HEADS, 6, seed, W0, activation),
        X,
        lambda x: kernel(x, kind=activation, bias=bias),
    )
    kind = {"relu": "rfa"}.get(name, name)
    np.testing.assert_array_equal(kernel(X[:3], kind=kind, bias=bias), kernel(X[:3], kind=activation, bias=bias))


def test_unit_kernels_are_the_limit_of_features():
    X = Task(d=6, n_keys=5).sample(36, seed=4)[0]
    check(lambda seed: MLPFeatures(HEADS, 6, 6, seed), X, lambda x: kernel(x, kind="rfmlp"))
    check(lambda seed: PatchFeatures(HEADS, 6, seed), X, lambda x: kernel(x, kind="patch"))


def test_unnormalised_tokens_any_bias_and_any_spread():
    rng = np.random.default_rng(1)
    X, S = 0.8 * rng.standard_normal((36, 4, 3)), rng.standard_normal((3, 3))
    W0 = mean_matrix(S, 3, 0.7)
    check(
        lambda seed: AttentionFeatures(HEADS, 3, seed, W0, Relu(tau=0.8)),
        X,
        lambda x: kernel(x, kind=Relu(tau=0.8), bias=S, bias_scale=0.7),
    )


def test_examples_with_different_numbers_of_keys():
    rng = np.random.default_rng(2)
    short, long = rng.standard_normal((4, 3)), rng.standard_normal((6, 3))
    for kind in ("brfa", "patch"):
        K = kernel([short, long], kind=kind)
        separate = kernel(short[None], long[None], kind=kind)
        np.testing.assert_allclose(K[0, 1], separate[0, 0], rtol=1e-12)
        np.testing.assert_allclose(K[0, 0], kernel(short[None], kind=kind)[0, 0], rtol=1e-12)


def test_quadrature_of_the_biased_kernel_is_the_closed_form():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 4000))
    rho = np.concatenate([rng.uniform(-1, 1, 2000), 1 - 10 ** rng.uniform(-6, -0.5, 2000)])
    r = np.sqrt(1 - rho**2)
    closed = (
        (a * b + rho) * bivariate_normal_cdf(a, b, rho)
        + a * normal_pdf(b) * normal_cdf((a - rho * b) / r)
        + b * normal_pdf(a) * normal_cdf((b - rho * a) / r)
        + r**2 * bivariate_normal_pdf(a, b, rho)
    )
    pairs = float64(lambda nodes: np.asarray(biased_relu_pairs(*map(_array, (a, b, rho)), nodes)))
    assert np.abs(pairs(12) - closed).max() < 1e-6
    assert np.abs(pairs(24) - closed).max() < 2e-8


def _array(x):
    import jax.numpy as jnp

    return jnp.asarray(x)


def test_the_polynomial_form_of_the_relu_kernel_is_exact_to_rounding():
    rho = np.concatenate([np.linspace(-1, 1, 4001), 1 - np.geomspace(1e-12, 1e-2, 200)])
    exact = relu_covariance(rho)
    assert np.abs(float64(lambda: np.asarray(relu_pairs(_array(rho))))() - exact).max() < 1e-12
    single = np.asarray(relu_pairs(_array(rho.astype(np.float32))))
    assert np.abs(single - relu_covariance(rho.astype(np.float32))).max() < 1e-7


def test_series_of_the_relu_kernel():
    rho = np.linspace(-0.9, 0.9, 19)
    powers = rho[:, None] ** np.arange(200)
    np.testing.assert_allclose(powers @ relu_coefficients(199), relu_covariance(rho), atol=1e-12)


def test_hermite_coefficients_expand_the_biased_kernel():
    from scipy.special import gammaln

    t, t2, rho, k = 0.3, -0.6, 0.4, np.arange(40)
    series = np.sum(np.exp(k * np.log(rho) - gammaln(k + 1)) * relu_hermite(39, t) * relu_hermite(39, t2))
    direct = float64(lambda: float(biased_relu_pairs(*map(_array, (t, t2, rho)), 24)))()
    assert abs(series - direct) < 1e-9


def test_a_kernel_is_symmetric_positive_and_bounded_by_one():
    X = Task(d=8, n_keys=6).sample(300, seed=1)[0]
    K = kernel(X, dtype="float32")
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K.astype(float)).min() > -1e-5
    assert K.max() <= 1
    np.testing.assert_allclose(K, kernel(X), atol=2e-6)


def test_bad_input_is_named():
    X = Task(d=4, n_keys=2).sample(3)[0]
    with pytest.raises(ValueError, match="kind must be one of"):
        kernel(X, kind="softmax")
    with pytest.raises(ValueError, match="tokens of one width"):
        kernel(X, X[..., :3])
    with pytest.raises(ValueError, match="same number of keys"):
        kernel([X[0], X[1, :2]], kind="rfmlp")
    with pytest.raises(ValueError, match="NaN or infinity"):
        kernel(np.full_like(X, np.nan))
    with pytest.raises(ValueError, match="JAX sees no GPU"):
        kernel(X, device="gpu")


@pytest.mark.parametrize(
    ("activation", "centred", "pooled"),
    [(Relu(), True, False), (Relu(), False, False), (Exponential(), False, False), (Relu(), False, True)],
)
def test_the_form_for_a_gpu_gives_the_same_tile(activation, centred, pooled):
    X = Task(d=3, n_keys=4).sample(20, seed=0)[0]
    side = _side(pad(X), np.zeros((4, 4)), 0.5, pooled, "float64")
    with jax.enable_x64(True):
        plain, batched = (
            np.asarray(_tile(side, side, activation, centred, 8, pooled, batched=form)) for form in (False, True)
        )
    # the same sums in another order
    np.testing.assert_allclose(batched, plain, rtol=1e-12)


@pytest.mark.parametrize("kind", ["rfa", "brfa"])
def test_the_classes_of_features_add_up_to_the_kernel(kind):
    X = 1.5 * Task(d=4, n_keys=3).sample(6, seed=0)[0]
    parts = kernel(X, kind=kind, by_class=True)
    np.testing.assert_allclose(parts.sum(axis=0), kernel(X, kind=kind), rtol=1e-12)
    # the constant coordinate alone, from the covariance of the weights of many heads
    mean = mean_matrix("identity", 4, float(kind == "brfa"))
    blocks = list(Features(AttentionFeatures(40_000, 4, 0, mean), Blas("float64").put(X), Blas("float64")))
    constant = sum(b.reshape(6, 5, -1)[:, -1] @ b.reshape(6, 5, -1)[:, -1].T for b in blocks)
    np.testing.assert_allclose(constant, parts[0], rtol=0.06)


def test_units_have_one_class():
    X = Task(d=4, n_keys=3).sample(5, seed=0)[0]
    for kind in ("rfmlp", "patch"):
        np.testing.assert_array_equal(kernel(X, kind=kind, by_class=True), kernel(X, kind=kind)[None])
