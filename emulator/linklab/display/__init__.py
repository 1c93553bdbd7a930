"""What the user sees on his terminal: others' words escaped there, the progress bar."""
