"""Search: the index of a library, the ranking of its skills for a request, by words and by meaning."""
