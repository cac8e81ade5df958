"""The planner: how many samples, and what they cost."""
