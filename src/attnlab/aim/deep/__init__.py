"""Several attention layers with skip connections."""
