"""Skills: one skill with its fields, instructions and files, and the catalogue of many."""
