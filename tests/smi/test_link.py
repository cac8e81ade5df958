"""What a link must say, and what is refused."""

import pickle
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.smi import Link, Task, links
from attnlab.smi.check import checked
from attnlab.smi.links import as_link, named
from attnlab.smi.links.named import SHIPPED
from attnlab.smi.tilt import tilt


def noisy_abs(z, e):
    return jnp.abs(z[0, 0]) + 0.1 * e[0]


def gaussian(y, z):
    return -0.5 * (y - jnp.abs(z[0, 0])) ** 2 / 0.01


def make(**changes):
    return Link(**({"tokens": 1, "rank": 1, "noise": 1, "sample": noisy_abs, "log_density": gaussian} | changes))


def test_a_good_link_passes():
    link = make()
    assert checked(link) is link
    assert link.route == "grid"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rank": 0}, "rank must be an integer >= 1"),
        ({"tokens": 0}, "tokens must be an integer >= 1"),
        ({"log_density": None}, "needs log_partition, solve or log_density"),
        ({"tokens": 13}, "13 indices are too many"),
        ({"symmetry": "signs"}, "did you mean 'sign'"),
        ({"symmetry": [np.eye(2)]}, "orthogonal 1 x 1 matrices"),
        ({"solve": noisy_abs}, "free must name"),
        ({"solve": noisy_abs, "free": ((0, 1),)}, "free must be positions"),
        ({"solve": noisy_abs, "free": ((0, 0), (0, 0))}, "free must name different positions"),
        ({"solve": noisy_abs, "free": ((8.0, -8.0),)}, r"low < high, got \(8.0, -8.0\)"),
        ({"free": ((0, 0),)}, "coordinates of solve, which is not given"),
    ],
)
def test_what_a_link_says_is_checked_when_it_is_made(changes, said):
    with pytest.raises(ValueError, match=said):
        make(**changes)


def nan_sample(z, e):
    return z[0, 0] * jnp.nan


def numpy_sample(z, e):
    return np.abs(np.asarray(z))[0, 0] + 0.1 * e[0]


def ragged_sample(z, e):
    return z[:, 0][e[0] > 0]


def matrix_mean(z):
    return z


def vector_density(y, z):
    return gaussian(y, z) * jnp.ones(2)


def infinite_density(y, z):
    return jnp.where(y > 0.5, -jnp.inf, gaussian(y, z))


def too_wide(y, z):
    return 0.05 * gaussian(y, z)


def linear(z, e):
    return z[0, 0] + 0.1 * e[0]


def linear_density(y, z):
    return -0.5 * (y - z[0, 0]) ** 2 / 0.01


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sample": nan_sample}, "sample returns NaN"),
        ({"noise": 0}, "sample fails on one sequence.*noise=0 is how many numbers e"),
        ({"sample": numpy_sample}, "sample fails on one sequence.*written with jax.numpy"),
        ({"sample": ragged_sample}, "sample fails on one sequence"),
        ({"mean": matrix_mean}, r"mean must return the shape \(\) of the output of sample, got \(1, 1\)"),
        ({"log_density": vector_density}, "log_density must return a scalar"),
        ({"log_density": infinite_density}, "log_density is not finite"),
        ({"log_density": too_wide}, "sample and log_density contradict each other"),
        ({"log_partition": gaussian}, "log_partition fails on one sequence.*takes 2 positional arguments"),
        (
            {"sample": linear, "log_density": linear_density, "symmetry": "sign"},
            "symmetry='sign' does not hold",
        ),
    ],
)
def test_a_wrong_function_is_named_before_it_is_used(changes, said):
    with pytest.raises(ValueError, match=said):
        checked(make(**changes))


def first_of_two(z, e):
    return z[0, 0] ** 2


def test_a_level_set_that_misses_y_is_refused():
    link = Link(1, 2, sample=first_of_two, solve=lambda y, s: (jnp.array([[[y, s[0]]]]), jnp.zeros(1)), free=((0, 1),))
    with pytest.raises(ValueError, match="solve misses y"):
        checked(link)


def test_a_level_set_is_two_arrays():
    link = Link(1, 2, sample=first_of_two, solve=lambda y, s: jnp.array([[[y, s[0]]]]), free=((0, 1),))
    with pytest.raises(TypeError, match="solve must return the two arrays z and logw"):
        checked(link)


def test_a_link_that_shows_nothing_is_reported():
    link = make(sample=lambda z, e: e[0], log_density=lambda y, z: 0.0 * z[0, 0])
    with pytest.warns(UserWarning, match="shows nothing of z"):
        checked(link)


def test_shipped_links_are_named_cached_and_travel_by_name():
    link = links.attention(tokens=3)
    assert link is named("attention(tokens=3)") is as_link("attention(tokens=3)")
    assert pickle.loads(pickle.dumps(link)) is link
    assert str(links.phase_retrieval()) == "phase_retrieval(noise=0.0)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("atention", "did you mean 'attention'"),
        ("attention(heads=2)", "has no parameter 'heads'"),
        ("attention(tokens=", "link must be a name"),
        ("attention(tokens=1)", "tokens must be an integer >= 2"),
    ],
)
def test_wrong_names_are_explained(text, said):
    with pytest.raises(ValueError, match=said):
        named(text)


def test_task_streams_and_shapes(seed):
    task = Task("deep_attention(layers=2, skip=0.5)", d=300, seed=seed)
    X, y = task.sample(40, seed)
    assert X.shape == (40, 2, 300)
    assert y.shape == (40, 2, 2)
    np.testing.assert_allclose(y.sum(axis=2), 1)
    np.testing.assert_array_equal(task.sample(40, seed)[0], X)
    # Truth and tokens of the same integer seed are independent: 4 standard errors of a correlation.
    assert abs(np.corrcoef(X.ravel()[:600], task.W.ravel())[0, 1]) < 4 / np.sqrt(600)


def test_tokens_of_a_task_are_those_of_its_link():
    assert Task("attention", tokens=4, d=10).law is links.attention(4)
    assert Task("attention(tokens=3)", d=10).tokens == 3
    with pytest.raises(ValueError, match="tokens is given twice"):
        Task("attention(tokens=3)", d=10, tokens=2)
    with pytest.raises(ValueError, match="tokens is given twice"):
        Task("sign", d=10, tokens=2)


def test_tilted_tokens_have_the_tilted_indices(seed):
    task = Task("single_location(tokens=3, nu=4.0)", d=50, seed=seed)
    X, y = task.sample(4000, seed)
    z = task.indices(X)
    # One of three tokens is marked by 2: the mean mark is 2/3, with standard error sqrt((1 + 4 * 2/9)/12000) < 0.013.
    assert abs(z[..., 0].mean() - 2 / 3) < 4 * 0.013
    variance = (task.W[1] ** 2).mean() + 0.1
    assert abs(np.var(y) - variance) < 4 * variance * np.sqrt(2 / 4000)


def test_the_information_of_tilted_tokens_is_computed():
    # nu e_k e_k^T in closed form; the mark is shifted by sqrt(nu) at one of the tokens
    np.testing.assert_allclose(tilt(links.single_location(tokens=3, nu=4.0)), np.diag([4.0, 0.0]), atol=5e-3)
    np.testing.assert_array_equal(tilt(links.attention()), [[0]])


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_links_pass_the_check_of_a_users_link(name):
    checked(replace(named(name), name="", parameters=()))


def test_a_name_does_not_replace_the_check():
    with pytest.raises(ValueError, match="contradict each other"):
        checked(make(name="mine", log_density=too_wide))
    with pytest.raises(ValueError, match="contradict each other"):
        checked(make(name="sign", parameters=(("noise", 0.0),), log_density=too_wide))
