"""The data part of message passing: products of the tokens with an estimate, through BLAS or on JAX devices."""
