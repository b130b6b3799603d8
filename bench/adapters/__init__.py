"""One module for each library that the comparison knows: ``discover(root)`` gives every skill's name and description.

``python -m bench.adapters MODULE ROOT SMALL`` runs in that library's own virtual environment, so nothing here imports
Prowess. Each module calls what its library offers for finding the skills of a folder, and no more than that.
"""
