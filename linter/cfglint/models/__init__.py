"""What is known of models: their architectures, by Hugging Face id."""
