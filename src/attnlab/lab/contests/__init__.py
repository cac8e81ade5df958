"""The arena: learners against tasks on equal data."""
