"""What makes captured packets readable: Wireshark dissectors of a run's programs."""
