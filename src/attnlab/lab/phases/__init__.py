"""Phase diagrams: where in a plane of two parameters learning succeeds."""
