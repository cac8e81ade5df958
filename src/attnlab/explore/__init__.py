"""The explorer: one self-contained page on which theory answers to sliders, with stored simulations on top."""
