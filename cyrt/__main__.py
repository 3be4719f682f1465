"""``python -m cyrt``: see :mod:`cyrt.cli`."""

import sys

from cyrt.cli import main

if __name__ == "__main__":
    sys.exit(main())
