"""Sculpting a convex body around the unknown attention matrices, phase by phase (arXiv:2402.04084)."""
