"""What the program answers before and after a change: the same commands over the same stored material."""
