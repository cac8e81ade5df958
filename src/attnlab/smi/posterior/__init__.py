"""Mean and covariance of the indices z given an output y and the estimate (omega, V), by three routes."""
