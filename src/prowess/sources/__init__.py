"""Where skills come from: folders, text in a program, a file that lists both, sites, archives."""
