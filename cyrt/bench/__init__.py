"""Microbenchmarks of launches, and their floors: the same work in C, measured in the same process.

:mod:`cyrt.bench.cases` lists the cases; ``python -m cyrt bench`` runs them. Every case checks its
results, including those of the measured operations, before it yields a time.
"""
