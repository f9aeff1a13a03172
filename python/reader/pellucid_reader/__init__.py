"""A second reader of Pellucid's containers, written from docs/format.md alone.

It shares no code with the program, so that the page can be shown to say everything a stranger needs. It reads files
that nobody has open: it takes no locks, changes nothing and finishes nothing.
"""
