"""Microbenchmarks of launches, and loops in C as floors, measured in the same process.

:mod:`cyrt.bench.cases` lists the cases; ``python -m cyrt bench`` runs them. Every case checks its
results, those of the measured operations included, before it yields a time.
"""
