"""What is packed and sent to nodes: two relays between Flower and a Unix socket."""
