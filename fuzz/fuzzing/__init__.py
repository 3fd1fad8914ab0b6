"""What is fuzzed and how inputs are made; the programs beside this package run it. Never imported by the package."""
