import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.common.precision import float64


@float64
def third() -> jax.Array:
    """One third."""
    return jnp.asarray(1.0) / 3


def test_float64_holds_inside_and_only_inside():
    assert not jax.config.jax_enable_x64
    inside = third()
    assert inside.dtype == np.float64
    assert float(inside) == 1 / 3
    assert jnp.asarray(1.0).dtype == np.float32
    assert not jax.config.jax_enable_x64


def test_the_setting_is_restored_after_an_error():
    @float64
    def fail():
        assert jnp.asarray(1.0).dtype == np.float64
        raise KeyError("inside")

    with pytest.raises(KeyError):
        fail()
    assert jnp.asarray(1.0).dtype == np.float32


def test_a_caller_in_float64_stays_there():
    with jax.enable_x64(True):
        third()
        assert jnp.asarray(1.0).dtype == np.float64


def test_nested_and_compiled_functions_agree():
    double = float64(lambda x: third() * x)
    assert float(double(3.0)) == 1.0
    # The same compiled function serves both precisions, each with its own program.
    square = jax.jit(lambda x: jnp.square(jnp.asarray(x)))
    assert square(0.1).dtype == np.float32
    assert float64(square)(0.1).dtype == np.float64
    assert square(0.1).dtype == np.float32


def test_name_arguments_and_docstring_pass_through():
    assert (third.__name__, third.__doc__) == ("third", "One third.")
    assert float64(lambda a, *, b: (a, b))(1, b=2) == (1, 2)
