"""Queue disciplines: what a link does with packets that have to wait."""
