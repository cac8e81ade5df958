"""What at least two systems use: validation, seeds, precision, Gaussian integrals, figures and claims."""
