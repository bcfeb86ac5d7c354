"""The claims of the paper, put to our numbers: what each says, how it is judged, what came of it."""
