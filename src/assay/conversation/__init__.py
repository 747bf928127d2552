"""Threads of turns: a turn is a run, and knows in short what came before it."""
