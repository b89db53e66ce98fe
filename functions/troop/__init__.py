"""Contains the code of the functions in parts: the halves `chaos` and `bench`, `report`, `dashboard`, and `shared`.

In each part, the layers `aws` (adapters), `flows` (steps), `api` and `wiring` lie beside pure rules.
"""
