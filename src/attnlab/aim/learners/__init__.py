"""What is fitted to attention-indexed data: message passing and gradient descent."""
