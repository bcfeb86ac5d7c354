"""The pipeline and federations broken on purpose: `make chaos`. Not part of `make test`."""
