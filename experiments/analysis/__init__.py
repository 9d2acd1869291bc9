"""From trial logs to numbers: incumbents, summaries, ranks, speed-ups, regrets, fronts. Draws nothing."""
