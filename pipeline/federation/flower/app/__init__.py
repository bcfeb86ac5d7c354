"""The Flower app that nodes receive: two relays, each between Flower and a Unix socket."""
