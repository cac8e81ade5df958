"""Learners of sequence multi-index models."""
