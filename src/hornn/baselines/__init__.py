"""What recurrent networks are compared with: models of counts, and networks that see a window of words."""
