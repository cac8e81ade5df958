"""Linear attention, and the estimators that are given the law."""
