"""The claims of the paper, put to our numbers."""
