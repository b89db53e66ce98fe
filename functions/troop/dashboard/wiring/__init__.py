"""Creates the widgets of dashboards."""
