"""`mleredux new`, which creates packages from templates."""
