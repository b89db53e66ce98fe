stress-ng --cpu {{ CPU }} --cpu-load {{ LoadPercent }} --timeout {{ DurationSeconds }}s
