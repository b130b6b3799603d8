"""The demonstration that ``prowess demo`` gives: real skills, a site on loopback and a scripted model."""
