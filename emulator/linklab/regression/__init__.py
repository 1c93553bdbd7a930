"""`linklab regress`: does a suite of downloads still take what its baseline says?"""
