"""What distillation does to words."""
