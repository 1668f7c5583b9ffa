"""Operations at providers: the engine that follows each to its outcome, and the interface that a kind of operation
implements.
"""
