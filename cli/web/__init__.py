"""Serves the signed API and the page of a deployment on 127.0.0.1."""
