"""What stands between the emulated master and whatever decides."""
