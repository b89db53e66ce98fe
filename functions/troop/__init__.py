"""Contains the code of the functions in flats: the halves `chaos` and `bench`, `report`, `dashboard`, and `shared`.

In each flat, the layers `aws` (adapters), `flows` (steps), `api` and `wiring` lie beside pure rules.
"""
