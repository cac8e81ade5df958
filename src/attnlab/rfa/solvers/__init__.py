"""Convex solvers on random features and kernels: ridge in its primal, dual and iterative forms, paths, other losses."""
