"""Put every config on one side: train, valid or test."""
