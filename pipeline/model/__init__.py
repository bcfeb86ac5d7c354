"""Backbones, the adapter stack, the frozen-prefix store and generation."""
