"""params.yaml -> one resolved order a stage and run."""
