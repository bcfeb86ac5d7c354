"""What goes along with a training: each is told of every finished round, and may say that it is over."""
