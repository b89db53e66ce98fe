"""What CloudWatch dashboards show of a deployment: rows in, HTML out. Pure; nothing here can change anything."""
