"""Put every config in one part: train, valid or test."""
