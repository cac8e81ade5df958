"""Attention layers of trained models: their weights as a layer of this system, and a small encoder around them."""
