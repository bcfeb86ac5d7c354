"""Where files lie, how they are written, what is told and tracked: what every room stands on."""
