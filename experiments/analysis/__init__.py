"""From trial logs to numbers: incumbents, summaries, ranks, speed-ups and fronts."""
