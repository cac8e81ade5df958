"""Fitting a layer to examples: variable projection, Gauss-Newton equations, Levenberg-Marquardt, starts, low rank."""
