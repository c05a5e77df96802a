"""What a night remembers: its cells and changes, looks, accepted levels, anchors and alerts, with one file format."""
