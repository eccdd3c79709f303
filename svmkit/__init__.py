"""svmkit: support vector machines from the shell, behind LIBSVM's interface."""

__version__ = "0.1.0"
