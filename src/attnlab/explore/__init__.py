"""The explorer: one self-contained page with sliders; theory is computed in the page, stored simulations are added."""
