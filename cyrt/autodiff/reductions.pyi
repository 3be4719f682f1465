# The module registers rules, and defines nothing for others.
