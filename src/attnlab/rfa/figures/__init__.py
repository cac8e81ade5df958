"""The experiments E1-E9 and their claims."""
