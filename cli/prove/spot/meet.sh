#!/bin/sh
test "$(grep -c . "$TROOP_ROSTER")" -gt 0
