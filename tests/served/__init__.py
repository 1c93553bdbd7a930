"""Servers that Debian packages, and one that is odd, beside what multilink, curl and aria2 get of them."""
