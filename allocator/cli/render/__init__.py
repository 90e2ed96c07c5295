"""What commands print, as tables and words."""
