"""All that knows Flower: the app that carries messages, and how a node starts it; in an environment of its own."""
