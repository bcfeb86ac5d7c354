"""Paths, reading and writing of files, progress and tracking: the base of every other package."""
