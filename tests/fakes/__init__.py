"""What stands in for hardware in tests."""
