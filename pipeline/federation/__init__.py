"""Train over separate machines: the operator's server, the organisations' nodes, and Flower, which carries messages."""
