"""A federation of machines that are really apart: its server, its organisations, and what carries messages between."""
