"""The only code that knows Flower: the app that carries messages, and the programs that start it."""
