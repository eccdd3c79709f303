"""The numba kernel engine: the only room, with maps, that asks how rows are stored."""
