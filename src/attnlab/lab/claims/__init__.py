"""What surrounds a verdict: registration before, confirmation after, many claims at once, replicates that decide."""
