"""Where the commands begin; ``python -m svmkit`` is ``svmkit``.

Loading a command takes long enough for a Ctrl-C to come. Until the command is at work, and after it, that ends the process by
the signal as it ends any other: Python's own answer would be a traceback.
"""

import signal
import sys


def svmkit() -> int:
    """The command ``svmkit``."""
    _begin()
    from svmkit.cli.main import main

    return main()


def svm_train() -> int:
    """The command ``svm-train``."""
    _begin()
    from svmkit.cli.compat.svm_train import main

    return main()


def svm_predict() -> int:
    """The command ``svm-predict``."""
    _begin()
    from svmkit.cli.compat.svm_predict import main

    return main()


def svm_scale() -> int:
    """The command ``svm-scale``."""
    _begin()
    from svmkit.cli.compat.svm_scale import main

    return main()


def _begin() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it was to be ignored from the start
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(svmkit())
