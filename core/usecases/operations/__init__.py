"""Operations at providers: the engine that follows each to its end, and what a subject tells it of its own."""
