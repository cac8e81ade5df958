"""Theory functions at the command line: found by their signatures, tabulated over ranges, drawn."""
