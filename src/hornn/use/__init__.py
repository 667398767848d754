"""What a trained model is used for: scores of text, music and speech, mixtures, samples, transcripts."""
