"""Everything that touches the file system: bounded reads, listings that follow no link, writes, locks and deletion."""
