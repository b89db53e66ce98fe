"""Contains the adapters: every call to AWS is made here."""
