"""What is fitted to examples of a multi-head attention layer."""
