"""Slow, literal forms of the paper's algorithms, used as test oracles."""
