"""Backbones, adapters, the frozen-prefix store and decoding."""
