"""`python -m adapter_conformance` is the `fidelity` command."""

from .cli import main

if __name__ == "__main__":
    main()
