"""Speed as a fact one can check: ratios measured side by side in one run on this machine."""
