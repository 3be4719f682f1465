"""Operations become graphs: recorded, keyed by topology, laid over cached executable graphs."""
