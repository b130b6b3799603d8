"""Quick readers of heads, which ``format.head.read_head`` asks before it parses; ``quick=False`` switches them off.

Each is here for one row of the bench (``python -m bench --parts engine``), of which it saves at least a quarter. It
accepts a head only if parsing would find the same; tests/format/frontmatter/test_quick.py compares the two.
"""
