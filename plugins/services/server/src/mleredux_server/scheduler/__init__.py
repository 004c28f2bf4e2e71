"""The scheduler: which queued jobs are handed to which workers, and what becomes of them."""
