"""Corpora: bytes as published -> `Example` records."""
