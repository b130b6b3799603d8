"""Strings: escaped, compared, counted and shortened, with no knowledge of skills."""
