"""Blocks of training rows: binning, and sums over them."""
