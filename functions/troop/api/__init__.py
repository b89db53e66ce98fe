"""The API: models, routes and nothing that decides. The only package that needs pydantic."""
