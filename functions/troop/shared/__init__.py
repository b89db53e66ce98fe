"""Contains what both halves use: values, settings, times, tables, and the layers below it."""
