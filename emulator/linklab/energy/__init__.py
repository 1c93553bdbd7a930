"""Energy: what a device draws by a model, from what a run directory says of its links."""
