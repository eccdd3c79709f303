"""The numba kernel engine: kernel values, and every compiled loop over them."""
