"""What is fitted to single-location data: attention layers, message passing, and reference predictors."""
