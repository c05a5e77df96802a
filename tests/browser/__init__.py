"""The report in a real browser: headless Chromium, from disk, with the network cut."""
