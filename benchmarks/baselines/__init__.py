"""The obvious alternatives: the best simple code a competent user would write."""
