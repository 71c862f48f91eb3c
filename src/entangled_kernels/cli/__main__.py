"""``python -m entangled_kernels.cli`` is the command."""

from . import main

if __name__ == "__main__":
    main()
