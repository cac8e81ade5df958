"""Recovering a layer by value queries: the learner chooses the tokens."""
