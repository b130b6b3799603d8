"""Skills in folders: one skill, the catalogue of many, and how they are found."""
