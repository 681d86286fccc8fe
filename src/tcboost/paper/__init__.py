"""What it takes to repeat the paper's experiments, and those against peers."""
