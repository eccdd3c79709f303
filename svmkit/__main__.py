"""``python -m svmkit`` is ``svmkit``."""

import sys

from svmkit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
