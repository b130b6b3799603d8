"""Git repositories: the program git in isolation, and the files of one commit."""
