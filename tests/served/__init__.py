"""Runs servers that Debian packages, and an odd one, with multilink, curl and aria2 as clients."""
