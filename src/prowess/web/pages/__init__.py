"""One module a page: a function that returns what the page shows as plain data, without HTTP and without HTML."""
